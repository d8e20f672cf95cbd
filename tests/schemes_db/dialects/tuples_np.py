import numpy as np

T = [
    (np.array([1, 0, 0, 0]), np.array([1, 0, 0, 0]), np.array([1, 1, 1, 1])),
    (np.array([0, 1, 0, 0]), np.array([0, 0, 1, 0]), np.array([1, 0, 0, 0])),
    (np.array([1, 1, -1, -1]), np.array([0, 0, 0, 1]), np.array([0, 1, 0, 0])),
    (np.array([0, 0, 0, 1]), np.array([1, -1, -1, 1]), np.array([0, 0, -1, 0])),
    (np.array([0, 0, 1, 1]), np.array([-1, 1, 0, 0]), np.array([0, 1, 0, 1])),
    (np.array([-1, 0, 1, 1]), np.array([1, -1, 0, 1]), np.array([0, 1, 1, 1])),
    (np.array([1, 0, -1, 0]), np.array([0, -1, 0, 1]), np.array([0, 0, 1, 1])),
]
