program strassen
  implicit none
  integer, parameter :: u(4,7) = reshape([ &
    1, 0, 0, 1, &
    0, 0, 1, 1, &
    1, 0, 0, 0, &
    0, 0, 0, 1, &
    1, 1, 0, 0, &
    -1, 0, 1, 0, &
    0, 1, 0, -1 ], [4, 7])
  integer, parameter :: v(4,7) = reshape([ &
    1, 0, 0, 1, &
    1, 0, 0, 0, &
    0, 1, 0, -1, &
    -1, 0, 1, 0, &
    0, 0, 0, 1, &
    1, 1, 0, 0, &
    0, 0, 1, 1 ], [4, 7])
  integer, parameter :: w(4,7) = reshape([ &
    1, 0, 0, 1, &
    0, 0, 1, -1, &
    0, 1, 0, 1, &
    1, 0, 1, 0, &
    -1, 1, 0, 0, &
    0, 0, 0, 1, &
    1, 0, 0, 0 ], [4, 7])
end program
