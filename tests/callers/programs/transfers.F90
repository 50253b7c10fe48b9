! Long messages and one-sided accesses called from Fortran, started before a computation and
! completed after it: exchanges of halos in a ring. It knows nothing of Weft. Exit status 1: what has
! arrived is wrong.
#include "interface.inc"

program transfers
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer, parameter :: n = 100000, steps = 5
  integer :: rank, ranks, left, right, step, error

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  do step = 1, steps
    call by_messages()
    call by_persistent_messages()
  end do
  call by_accesses()
  call MPI_Allreduce(MPI_IN_PLACE, differing, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  if (rank == 0) print '(a, i0, a)', 'transfers: ', cases - differing, ' cases equal'
  call MPI_Finalize(error)
  if (differing > 0) stop 1
contains

  function ramp_of(of, seed)
    integer, intent(in) :: of, seed
    real(8) :: ramp_of(n)
    ramp_of = ramp(n, seed + 11 * of)
  end function

  subroutine compute()
    real(8) :: sum
    integer :: i
    sum = 0
    do i = 1, 2000000
      sum = sum + sqrt(dble(i))
    end do
    call check('computation', sum > 0)
  end subroutine

  subroutine by_messages()
    real(8), asynchronous :: to_left(n), to_right(n), from_left(n), from_right(n)
    REQUEST :: pending(4)
    to_left = ramp_of(rank, step)
    to_right = ramp_of(rank, -step)
    call MPI_Irecv(from_left, n, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, pending(1), error)
    call MPI_Irecv(from_right, n, MPI_DOUBLE_PRECISION, right, 2, MPI_COMM_WORLD, pending(2), error)
    call MPI_Isend(to_right, n, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, pending(3), error)
    call MPI_Isend(to_left, n, MPI_DOUBLE_PRECISION, left, 2, MPI_COMM_WORLD, pending(4), error)
    call compute()
    call MPI_Waitall(4, pending, MPI_STATUSES_IGNORE, error)
    call check('from the left', all(from_left == ramp_of(left, -step)))
    call check('from the right', all(from_right == ramp_of(right, step)))
  end subroutine

  subroutine by_persistent_messages()
    real(8), asynchronous :: out(n), in(n)
    REQUEST :: pending(2)
    STATUS :: done STATUSES(2)
    out = ramp_of(rank, step)
    call MPI_Recv_init(in, n, MPI_DOUBLE_PRECISION, left, 3, MPI_COMM_WORLD, pending(1), error)
    call MPI_Send_init(out, n, MPI_DOUBLE_PRECISION, right, 3, MPI_COMM_WORLD, pending(2), error)
    call MPI_Startall(2, pending, error)
    call compute()
    call MPI_Waitall(2, pending, done, error)
    call check('by persistent messages', all(in == ramp_of(left, step)))
    call MPI_Request_free(pending(1), error)
    call MPI_Request_free(pending(2), error)
  end subroutine

  subroutine by_accesses()
    integer, parameter :: bytes = 8
    real(8), asynchronous :: memory(n, 2), out(n), in(n)
    integer(kind=MPI_ADDRESS_KIND) :: all_bytes, second
    WINDOW :: window
    all_bytes = int(2 * n * bytes, kind=MPI_ADDRESS_KIND)
    second = n
    call MPI_Win_create(memory, all_bytes, bytes, MPI_INFO_NULL, MPI_COMM_WORLD, window, error)
    do step = 1, steps
      memory(:, 1) = 0
      memory(:, 2) = ramp_of(rank, step)
      out = ramp_of(rank, -step)
      call MPI_Win_fence(0, window, error)
      call MPI_Put(out, n, MPI_DOUBLE_PRECISION, right, 0_MPI_ADDRESS_KIND, n, MPI_DOUBLE_PRECISION, window, error)
      call MPI_Get(in, n, MPI_DOUBLE_PRECISION, left, second, n, MPI_DOUBLE_PRECISION, window, error)
      call compute()
      call MPI_Win_fence(0, window, error)
      call check('by MPI_Put', all(memory(:, 1) == ramp_of(left, -step)))
      call check('by MPI_Get', all(in == ramp_of(left, step)))
      call MPI_Barrier(MPI_COMM_WORLD, error)
    end do
    call MPI_Win_free(window, error)
  end subroutine
end program
