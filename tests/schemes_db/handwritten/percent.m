% Strassen, 2 x 2
m1 = (a11 + a22) * (b11 + b22); % step
m2 = (a21 + a22) * (b11); % step
m3 = (a11) * (b12 - b22); % step
m4 = (a22) * (b21 - b11); % step
m5 = (a11 + a12) * (b22); % step
m6 = (a21 - a11) * (b11 + b12); % step
m7 = (a12 - a22) * (b21 + b22); % step
c11 = m1 + m4 - m5 + m7; % step
c12 = m3 + m5; % step
c21 = m2 + m4; % step
c22 = m1 - m2 + m3 + m6; % step
