import numpy as np
A1 = np.array([[1, 0], [0, 1]]); B1 = np.array([[1, 0], [0, 1]]); C1 = np.array([[1, 0], [0, 1]])
A2 = np.array([[0, 0], [1, 1]]); B2 = np.array([[1, 0], [0, 0]]); C2 = np.array([[0, 0], [1, -1]])
A3 = np.array([[1, 0], [0, 0]]); B3 = np.array([[0, 1], [0, -1]]); C3 = np.array([[0, 1], [0, 1]])
A4 = np.array([[0, 0], [0, 1]]); B4 = np.array([[-1, 0], [1, 0]]); C4 = np.array([[1, 0], [1, 0]])
A5 = np.array([[1, 1], [0, 0]]); B5 = np.array([[0, 0], [0, 1]]); C5 = np.array([[-1, 1], [0, 0]])
A6 = np.array([[-1, 0], [1, 0]]); B6 = np.array([[1, 1], [0, 0]]); C6 = np.array([[0, 0], [0, 1]])
A7 = np.array([[0, 1], [0, -1]]); B7 = np.array([[0, 0], [1, 1]]); C7 = np.array([[1, 0], [0, 0]])
