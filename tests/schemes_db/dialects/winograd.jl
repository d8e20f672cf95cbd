function winograd(A, B)
    a11, a12 = A[1, :]
    a21, a22 = A[2, :]
    b11, b12 = B[1, :]
    b21, b22 = B[2, :]
    s1 = a21 + a22; s2 = s1 - a11; s3 = a11 - a21; s4 = a12 - s2
    t1 = b12 - b11; t2 = b22 - t1; t3 = b22 - b12; t4 = t2 - b21
    p1 = a11*b11; p2 = a12*b21; p3 = s4*b22; p4 = a22*t4; p5 = s1*t1; p6 = s2*t2; p7 = s3*t3
    u2 = p1 + p6; u3 = u2 + p7; u4 = u2 + p5
    [p1 + p2  u4 + p3; u3 - p4  u3 + p5]
end
