! Procedures that use mpi_f08 in several ways. "CALL name" marks its line, "USE name" the first use.
module shared
  use mpi_f08
  implicit none
  integer, parameter :: n = 64
contains
  double precision function busy(count)
    integer, intent(in) :: count
    integer :: i
    busy = 1
    do i = 1, count
      busy = 0.5d0*busy + 1/(busy + i)
    end do
  end function busy
end module shared

module through
  use shared
  implicit none
contains
  subroutine handed_on(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: ierr
    part = 1
    call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)  ! CALL handed_on
    answer = busy(20)
    answer = answer + total(3)  ! USE handed_on
  end subroutine handed_on
end module through

module cases
  use shared, only: n, busy
  implicit none
contains
  subroutine plain(answer)
    use mpi_f08
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: i, ierr
    part = 1
    call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)  ! CALL plain
    answer = busy(20)
    do i = 1, n
      answer = answer + part(i)
    end do
    answer = answer + total(3)  ! USE plain
  end subroutine plain

  subroutine some_names(answer)
    use mpi_f08, only: MPI_Allreduce, MPI_COMM_WORLD, MPI_SUM, MPI_DOUBLE_PRECISION
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: ierr
    part = 2
    call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)  ! CALL some_names
    answer = busy(20)
    answer = answer + total(3)  ! USE some_names
  end subroutine some_names

  subroutine some_ranks(answer)
    use mpi_f08
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    type(MPI_Comm) :: some
    integer :: rank, step, ierr
    answer = 0
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, some, ierr)
    do 10 step = 1, 3
      part = step
      call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_MAX, some, ierr)  ! CALL some_ranks
      answer = answer + busy(20)
      if (answer < 0) cycle
      answer = answer + total(3)  ! USE some_ranks
10  continue
    call MPI_Comm_free(some, ierr)
  end subroutine some_ranks

  subroutine pairs(answer)
    use mpi_f08
    double precision, intent(out) :: answer
    double precision, allocatable :: field(:)
    type(MPI_Datatype) :: two
    integer :: ierr
    allocate (field(n))
    field = 5
    call MPI_Type_contiguous(2, MPI_DOUBLE_PRECISION, two, ierr)
    call MPI_Type_commit(two, ierr)
    call MPI_Bcast(field, n/2, two, 0, MPI_COMM_WORLD, ierr)  ! CALL pairs
    answer = busy(20)
    call MPI_Type_free(two, ierr)
    answer = answer + busy(30)
    answer = answer + field(3)  ! USE pairs
  end subroutine pairs

  subroutine early(give_up, answer)
    use mpi_f08
    logical, intent(in) :: give_up
    double precision, intent(out) :: answer
    double precision :: total(n)
    integer :: ierr
    total = 4
    answer = 0
    call MPI_Bcast(total, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)  ! CALL early
    if (give_up) return
    answer = busy(20)
    answer = answer + total(3)  ! USE early
  end subroutine early

  subroutine sooner(answer)
    use mpi_f08
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: ierr
    part = 3  ! WRITE sooner
    answer = busy(20)
    answer = answer + busy(10)
    call MPI_Reduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, ierr)  ! CALL sooner
    answer = answer + total(3)*0  ! USE sooner
  end subroutine sooner
end module cases

program main
  use mpi_f08
  use through
  use cases, only: plain, some_names, some_ranks, pairs, early, sooner
  implicit none
  double precision :: answers(7)
  integer :: rank, ierr, time
  call MPI_Init(ierr)
  do time = 1, 20
    call handed_on(answers(1))
    call plain(answers(2))
    call some_names(answers(3))
    call some_ranks(answers(4))
    call pairs(answers(5))
    call early(.false., answers(6))
    call sooner(answers(7))
  end do
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  if (rank == 0) print '(es20.12)', answers
  call MPI_Finalize(ierr)
end program main
