! Ranks of a row, a vector of a type of MPI, and a loop whose result is used behind it.
! EXPECT across: changed
! EXPECT typed: changed
! EXPECT last: changed
module work_of
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
end module work_of

program rows
  use work_of
  implicit none
  include 'mpif.h'
  double precision :: answers(3)
  integer :: row, rank, ierr, step
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_split(MPI_COMM_WORLD, rank/2, rank, row, ierr)
  do step = 1, 15
    call across(row, answers(1))
    call typed(row, answers(2))
    call last(answers(3))
  end do
  if (rank == 0) print '(es20.12)', answers
  call MPI_Comm_free(row, ierr)
  call MPI_Finalize(ierr)
contains
  subroutine across(comm, answer)
    integer, intent(in) :: comm
    double precision, intent(out) :: answer
    double precision, allocatable :: own(:), all(:)
    integer :: ranks, ierr, i
    call MPI_Comm_size(comm, ranks, ierr)
    allocate (own(n), all(n*ranks))
    own = [(mod(i, 7), i = 1, n)]
    call MPI_Allgather(own, n, MPI_DOUBLE_PRECISION, all, n, & ! CALL across
                       MPI_DOUBLE_PRECISION, comm, ierr)
    answer = work(1) + own(3)
    answer = answer + sum(all) ! USE across
    deallocate (own, all)
  end subroutine across

  subroutine typed(comm, answer)
    integer, intent(in) :: comm
    double precision, intent(out) :: answer
    double precision :: table(2, n)
    integer :: column, ierr
    table = 3
    call MPI_Type_vector(n, 1, 2, MPI_DOUBLE_PRECISION, column, ierr)
    call MPI_Type_commit(column, ierr)
    call MPI_Bcast(table(1, 1), 1, column, 0, comm, ierr) ! CALL typed
    answer = work(2)
    call MPI_Type_free(column, ierr)
    answer = answer + work(3)
    answer = answer + table(1, 5) ! USE typed
  end subroutine typed

  subroutine last(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: ierr, i
    part = 2
    total = 0
    answer = 0
    do i = 1, 3
      part(1) = i
      call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr) ! CALL last
      answer = answer + work(i)
    end do
    answer = answer + total(1) ! USE last
  end subroutine last
end program rows
