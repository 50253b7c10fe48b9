! Sections of arrays, of which MPI may get a copy, and elements at which contiguous memory begins.
! EXPECT strided: left: is a section
! EXPECT chosen: left: copy
! EXPECT scalars: changed
! EXPECT column: changed
! EXPECT expression: left: is no variable or element of an array
! EXPECT assumed: left: has an assumed shape
! EXPECT component: left: is no variable or element of an array
module sections
  use mpi
  implicit none
  integer, parameter :: n = 20000
  type field
    double precision :: value(n)
  end type field
contains
  double precision function work(seed)
    integer, intent(in) :: seed
    integer :: i
    work = seed
    do i = 1, n
      work = 0.5d0*work + mod(i, 3)
    end do
  end function work

  subroutine strided(answer)
    double precision, intent(out) :: answer
    double precision :: part(2*n), total(2*n)
    integer :: ierr
    part = 1
    total = 0
    call MPI_Allreduce(part(1::2), total(1::2), n, MPI_DOUBLE_PRECISION, & ! CALL strided
                       MPI_SUM, MPI_COMM_WORLD, ierr)
    answer = work(1)
    answer = answer + total(3) ! USE strided
  end subroutine strided

  subroutine chosen(answer)
    double precision, intent(out) :: answer
    double precision :: part(2*n), total(2*n)
    integer :: even(n), i, ierr
    even = [(2*i, i=1, n)]
    part = 2
    total = 0
    call MPI_Allreduce(part(even), total, n, MPI_DOUBLE_PRECISION, & ! CALL chosen
                       MPI_SUM, MPI_COMM_WORLD, ierr)
    answer = work(2)
    answer = answer + total(4) ! USE chosen
  end subroutine chosen

  subroutine scalars(answer)
    double precision, intent(out) :: answer
    double precision :: own, all
    integer :: ierr
    own = work(3)
    call MPI_Allreduce(own, all, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierr) ! CALL scalars
    answer = work(4) + own
    answer = answer + work(5)
    answer = answer + all ! USE scalars
  end subroutine scalars

  subroutine column(answer)
    double precision, intent(out) :: answer
    double precision :: table(n, 3)
    integer :: j, ierr
    table = 3
    do j = 1, 3
      call MPI_Bcast(table(1, j), n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr) ! CALL column
      answer = work(j)
      table(1, j) = table(1, j) + answer ! USE column
    end do
    answer = sum(table(1, :))
  end subroutine column

  subroutine expression(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: ierr
    part = 4
    call MPI_Allreduce((part), total, n, MPI_DOUBLE_PRECISION, & ! CALL expression
                       MPI_SUM, MPI_COMM_WORLD, ierr)
    answer = work(6)
    answer = answer + total(7) ! USE expression
  end subroutine expression

  subroutine assumed(part, answer)
    double precision, intent(inout) :: part(:)
    double precision, intent(out) :: answer
    integer :: ierr
    call MPI_Bcast(part, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr) ! CALL assumed
    answer = work(7)
    answer = answer + part(8) ! USE assumed
  end subroutine assumed

  subroutine component(answer)
    double precision, intent(out) :: answer
    type(field) :: one
    integer :: ierr
    one%value = 5
    call MPI_Bcast(one%value, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr) ! CALL component
    answer = work(8)
    answer = answer + one%value(9) ! USE component
  end subroutine component
end module sections

program main
  use sections
  implicit none
  double precision :: answers(7), wide(2*n)
  integer :: rank, ierr, step
  call MPI_Init(ierr)
  wide = 6
  do step = 1, 10
    call strided(answers(1))
    call chosen(answers(2))
    call scalars(answers(3))
    call column(answers(4))
    call expression(answers(5))
    call assumed(wide(::2), answers(6))
    call component(answers(7))
  end do
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  if (rank == 0) print '(es20.12)', answers
  call MPI_Finalize(ierr)
end program main
