! Procedures of modules and inside of others: who else sees the buffers.
! EXPECT inner: left: may write change
! EXPECT beside: changed
! EXPECT of_module: left: is not declared in the same function
! EXPECT by_argument: changed
! EXPECT result_of: changed
module host
  use mpi_f08
  implicit none
  integer, parameter :: n = 20000
  double precision :: shared(n) = 1
contains
  double precision function work(seed)
    integer, intent(in) :: seed
    integer :: i
    work = seed
    do i = 1, n
      work = 0.5d0*work + mod(i, 3)
    end do
  end function work

  subroutine inner(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    part = 1
    call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD) ! CALL inner
    call change(2)
    answer = work(1)
    answer = answer + total(3) ! USE inner
  contains
    subroutine change(i)
      integer, intent(in) :: i
      part(i) = part(i) + 1
    end subroutine change
  end subroutine inner

  subroutine beside(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n), x
    part = 2
    x = 1
    call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD) ! CALL beside
    call grow(x)
    answer = work(2) + x
    answer = answer + total(4) ! USE beside
  contains
    subroutine grow(y)
      double precision, intent(inout) :: y
      y = 2*y
    end subroutine grow
  end subroutine beside

  subroutine of_module(answer)
    double precision, intent(out) :: answer
    double precision :: total(n)
    call MPI_Allreduce(shared, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD) ! CALL of_module
    answer = work(3)
    answer = answer + total(5) ! USE of_module
  end subroutine of_module

  subroutine by_argument(part, answer)
    double precision, intent(inout) :: part(n)
    double precision, intent(out) :: answer
    call MPI_Bcast(part, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD) ! CALL by_argument
    answer = work(4)
    answer = answer + part(6) ! USE by_argument
  end subroutine by_argument

  double precision function result_of(comm)
    type(MPI_Comm), intent(in) :: comm
    double precision :: part(n), total(n)
    part = 3
    call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_MAX, comm) ! CALL result_of
    result_of = work(5)
    result_of = result_of + work(6)
    result_of = result_of + total(7) ! USE result_of
  end function result_of
end module host

program main
  use host
  implicit none
  double precision :: answers(5), own(n)
  integer :: rank, step
  call MPI_Init()
  own = 4
  do step = 1, 10
    call inner(answers(1))
    call beside(answers(2))
    call of_module(answers(3))
    call by_argument(own, answers(4))
    answers(5) = result_of(MPI_COMM_WORLD)
  end do
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  if (rank == 0) print '(es20.12)', answers
  call MPI_Finalize()
end program main
