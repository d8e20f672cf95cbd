function winograd(A, B) {
  const [[a11, a12], [a21, a22]] = A;
  const [[b11, b12], [b21, b22]] = B;
  const s1 = a21 + a22;
  const s2 = s1 - a11;
  const s3 = a11 - a21;
  const s4 = a12 - s2;
  const t1 = b12 - b11;
  const t2 = b22 - t1;
  const t3 = b22 - b12;
  const t4 = t2 - b21;
  const p1 = a11 * b11;
  const p2 = a12 * b21;
  const p3 = s4 * b22;
  const p4 = a22 * t4;
  const p5 = s1 * t1;
  const p6 = s2 * t2;
  const p7 = s3 * t3;
  const u2 = p1 + p6;
  const u3 = u2 + p7;
  return [[p1 + p2, u2 + p5 + p3], [u3 - p4, u3 + p5]];
}
