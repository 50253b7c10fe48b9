! Parts that are compiled or not, around calls, behind them and among the declarations.
! EXPECT chosen: left: a directive
! EXPECT behind: changed
! EXPECT declared: changed
#define WITH_MPI
module options
#ifdef WITH_MPI
  use mpi
#endif
  implicit none
  integer, parameter :: n = 20000
contains
  double precision function work(seed)
    integer, intent(in) :: seed
    integer :: i
    work = seed
    do i = 1, n
      work = 0.5d0*work + mod(i, 3)
    end do
  end function work

  subroutine chosen(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: ierr
    part = 1
#ifdef WITH_MPI
    call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr) ! CALL chosen
#else
    total = part
#endif
    answer = work(1)
    answer = answer + total(2) ! USE chosen
  end subroutine chosen

  subroutine behind(answer)
    use mpi
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: ierr
    part = 2
    call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr) ! CALL behind
    answer = work(2)
#ifdef WITH_MPI
    answer = answer + work(3)
#endif
    answer = answer + total(3) ! USE behind
  end subroutine behind

  subroutine declared(answer)
    use mpi
    double precision, intent(out) :: answer
    double precision :: part(n), &
                        total(n)
#ifdef WITH_MPI
    double precision :: more
#endif
    integer :: ierr
    part = 3
    more = 1
    call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr) ! CALL declared
    answer = work(4) + more
    answer = answer + work(5)
    answer = answer + total(4) ! USE declared
  end subroutine declared
end module options

program main
  use mpi
  use options
  implicit none
  double precision :: answers(3)
  integer :: rank, ierr, step
  call MPI_Init(ierr)
  do step = 1, 10
    call chosen(answers(1))
    call behind(answers(2))
    call declared(answers(3))
  end do
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  if (rank == 0) print '(es20.12)', answers
  call MPI_Finalize(ierr)
end program main
