#ifndef STRASSEN_H
#define STRASSEN_H
#define RANK 7
static const signed char U[RANK * 4] = {
  1, 0, 0, 1,
  0, 0, 1, 1,
  1, 0, 0, 0,
  0, 0, 0, 1,
  1, 1, 0, 0,
  -1, 0, 1, 0,
  0, 1, 0, -1
};
static const signed char V[RANK * 4] = {
  1, 0, 0, 1,
  1, 0, 0, 0,
  0, 1, 0, -1,
  -1, 0, 1, 0,
  0, 0, 0, 1,
  1, 1, 0, 0,
  0, 0, 1, 1
};
static const signed char W[RANK * 4] = {
  1, 0, 0, 1,
  0, 0, 1, -1,
  0, 1, 0, 1,
  1, 0, 1, 0,
  -1, 1, 0, 0,
  0, 0, 0, 1,
  1, 0, 0, 0
};
#endif
