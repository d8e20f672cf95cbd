/* Strassen 1969 */
  double m1 = (a11 + a22) * (b11 + b22);
  double m2 = (a21 + a22) * b11;
  double m3 = a11 * (b12 - b22);
  double m4 = a22 * (b21 - b11);
  double m5 = (a11 + a12) * b22;
  double m6 = (a21 - a11) * (b11 + b12);
  double m7 = (a12 - a22) * (b21 + b22);
  c11 = m1 + m4 - m5 + m7;
  c12 = m3 + m5;
  c21 = m2 + m4;
  c22 = m1 - m2 + m3 + m6;
