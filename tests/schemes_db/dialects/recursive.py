def strassen(x, y):
    if len(x) == 1:
        return x * y
    a, b, c, d = split(x)
    e, f, g, h = split(y)
    p1 = strassen(a + d, e + h)
    p2 = strassen(c + d, e)
    p3 = strassen(a, f - h)
    p4 = strassen(d, g - e)
    p5 = strassen(a + b, h)
    p6 = strassen(c - a, e + f)
    p7 = strassen(b - d, g + h)
    c11 = p1 + p4 - p5 + p7
    c12 = p3 + p5
    c21 = p2 + p4
    c22 = p1 - p2 + p3 + p6
    return np.vstack((np.hstack((c11, c12)), np.hstack((c21, c22))))
