! Declarations and statements of another file, and names of the same memory.
! FILE included.sizes.inc
! EXPECT sized: changed
! EXPECT associated: left: may write same
! EXPECT behind: changed
module included
  use mpi_f08, only: MPI_Allreduce, MPI_COMM_WORLD, MPI_DOUBLE_PRECISION, MPI_SUM
  implicit none
  include 'included.sizes.inc'
contains
  double precision function work(seed)
    integer, intent(in) :: seed
    integer :: i
    work = seed
    do i = 1, n
      work = 0.5d0*work + mod(i, 3)
    end do
  end function work

  subroutine sized(answer)
    double precision, intent(out) :: answer
    real(kind=kind(1d0)), dimension(n) :: part, total
    part = 1
    call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD) ! CALL sized
    answer = work(1)
    answer = answer + sum(part)
    answer = answer + total(2) ! USE sized
  end subroutine sized

  subroutine associated_with(answer)
    double precision, intent(out) :: answer
    double precision, target :: part(n), total(n)
    double precision, pointer :: same(:)
    part = 2
    same => part(2:n)
    call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD) ! CALL associated
    same(1) = 3
    answer = work(2)
    answer = answer + total(3) ! USE associated
  end subroutine associated_with

  subroutine behind(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    part = 3
    call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD) ! CALL behind
    answer = work(3)
    associate (first => total(1))
      answer = answer + first ! USE behind
    end associate
  end subroutine behind
end module included

program main
  use mpi_f08
  use included, only: sized, associated_with, behind
  implicit none
  double precision :: answers(3)
  integer :: rank, step
  call MPI_Init()
  do step = 1, 10
    call sized(answers(1))
    call associated_with(answers(2))
    call behind(answers(3))
  end do
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  if (rank == 0) print '(es20.12)', answers
  call MPI_Finalize()
end program main
