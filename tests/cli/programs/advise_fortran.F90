! One reduction whose result is used after 3 ms, and two barriers that are reached in turn, more often
! than the advisor unwinds the stack: it names this file and the line of each.
program advise_fortran
  implicit none
  include 'mpif.h'
  double precision, allocatable :: field(:), total(:)
  integer :: error, i
  call MPI_Init(error)
  allocate(field(5000), total(5000))
  field = 1
  do i = 1, 12
    call reduce
    call busy
    field(i) = total(i)
  end do
  do i = 1, 100
    call one_barrier
    call other_barrier
  end do
  print *, sum(field)
  call MPI_Finalize(error)
contains
  subroutine reduce
    call MPI_Allreduce(field, total, 5000, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  end subroutine
  subroutine one_barrier
    call MPI_Barrier(MPI_COMM_WORLD, error)  ! one
  end subroutine
  subroutine other_barrier
    call MPI_Barrier(MPI_COMM_WORLD, error)  ! other
  end subroutine
  subroutine busy
    double precision :: finish
    finish = MPI_Wtime() + 3d-3
    do while (MPI_Wtime() < finish)
    end do
  end subroutine
end program
