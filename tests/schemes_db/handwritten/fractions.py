from fractions import Fraction
U = [[Fraction(2, 2), 0, 0, Fraction(2, 2)], [0, 0, Fraction(2, 2), Fraction(2, 2)], [Fraction(2, 2), 0, 0, 0], [0, 0, 0, Fraction(2, 2)], [Fraction(2, 2), Fraction(2, 2), 0, 0], [-Fraction(2, 2), 0, Fraction(2, 2), 0], [0, Fraction(2, 2), 0, -Fraction(2, 2)]]
V = [[1, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, -1], [-1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]]
W = [[1, 0, 0, 1], [0, 0, 1, -1], [0, 1, 0, 1], [1, 0, 1, 0], [-1, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0]]
