! Non-blocking and persistent collectives called from Fortran, each against the blocking call.
! Why: Fortran's constants (MPI_IN_PLACE, MPI_BOTTOM, MPI_STATUS_IGNORE), handles and operators are
! not C's, and a library's Fortran layer calls MPI by names of its own choice. PERSISTENT where there
! are persistent collectives, MIXED_TYPES where an allgather may send one type and receive another.
! It knows nothing of Weft. Exit status 1: some result differs.
#include "interface.inc"

! The operator: (m, c) stands for x -> m x + c; one such map after the other. Associative, not
! commutative.
#if defined(INTERFACE_MPI_F08)
subroutine compose(left, right, length, datatype)
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  use mpi_f08, only: MPI_Datatype
  implicit none
  type(c_ptr), value :: left, right
  integer :: length
  type(MPI_Datatype) :: datatype
  integer, pointer :: a(:, :), b(:, :)
  call c_f_pointer(left, a, [2, length])
  call c_f_pointer(right, b, [2, length])
  b(2, :) = b(1, :) * a(2, :) + b(2, :)
  b(1, :) = b(1, :) * a(1, :)
end subroutine
#else
subroutine compose(a, b, length, datatype)
  implicit none
  integer :: length, datatype
  integer :: a(2, length), b(2, length)
  b(2, :) = b(1, :) * a(2, :) + b(2, :)
  b(1, :) = b(1, :) * a(1, :)
end subroutine
#endif

program collectives
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer, parameter :: lengths(3) = [1, 100, 20000]
  COMM :: comms(2)
  integer :: rank, ranks, error, i, k
#if defined(INTERFACE_MPI_F08)
  procedure(MPI_User_function) :: compose
#else
  external :: compose
#endif

  call MPI_Init(error)
  comms(1) = MPI_COMM_WORLD
  call MPI_Comm_dup(MPI_COMM_WORLD, comms(2), error)
  do k = 1, 2
    call MPI_Comm_rank(comms(k), rank, error)
    call MPI_Comm_size(comms(k), ranks, error)
    do i = 1, size(lengths)
      call every_collective(comms(k), lengths(i))
      call in_place(comms(k), lengths(i))
      call absolute_addresses(comms(k), lengths(i))
      call own_operator(comms(k), lengths(i))
      call completions(comms(k), lengths(i))
#if defined(PERSISTENT)
      call persistent(comms(k), lengths(i))
#endif
    end do
  end do
  call MPI_Comm_free(comms(2), error)
  call MPI_Allreduce(MPI_IN_PLACE, differing, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  if (rank == 0) print '(a, i0, a)', 'collectives: ', cases - differing, ' cases equal'
  call MPI_Finalize(error)
  if (differing > 0) stop 1
contains

  subroutine wait_for(pending)
    REQUEST, intent(inout) :: pending
    call MPI_Wait(pending, MPI_STATUS_IGNORE, error)
    call check('request null after the wait', pending == MPI_REQUEST_NULL)
  end subroutine

  subroutine every_collective(comm, n)
    COMM, intent(in) :: comm
    integer, intent(in) :: n
    real(8), allocatable, asynchronous :: mine(:), theirs(:)
    real(8), allocatable :: expected(:)
    REQUEST :: pending
    integer :: root

    do root = 0, ranks - 1
      theirs = ramp(n, rank)
      expected = theirs
      call MPI_Ibcast(theirs, n, MPI_DOUBLE_PRECISION, root, comm, pending, error)
      call wait_for(pending)
      call MPI_Bcast(expected, n, MPI_DOUBLE_PRECISION, root, comm, error)
      call check('Ibcast', all(theirs == expected))

      mine = ramp(n, rank)
      theirs = 0 * mine
      expected = theirs
      call MPI_Ireduce(mine, theirs, n, MPI_DOUBLE_PRECISION, MPI_MAX, root, comm, pending, error)
      call wait_for(pending)
      call MPI_Reduce(mine, expected, n, MPI_DOUBLE_PRECISION, MPI_MAX, root, comm, error)
      call check('Ireduce', all(theirs == expected))
    end do

    mine = ramp(n, rank)
    theirs = 0 * mine
    expected = theirs
    call MPI_Iallreduce(mine, theirs, n, MPI_DOUBLE_PRECISION, MPI_SUM, comm, pending, error)
    call wait_for(pending)
    call MPI_Allreduce(mine, expected, n, MPI_DOUBLE_PRECISION, MPI_SUM, comm, error)
    call check('Iallreduce', all(theirs == expected))

    call MPI_Iscan(mine, theirs, n, MPI_DOUBLE_PRECISION, MPI_SUM, comm, pending, error)
    call wait_for(pending)
    call MPI_Scan(mine, expected, n, MPI_DOUBLE_PRECISION, MPI_SUM, comm, error)
    call check('Iscan', all(theirs == expected))

    theirs = ramp(n * ranks, -1)
    expected = theirs
    call MPI_Iallgather(mine, n, MPI_DOUBLE_PRECISION, theirs, n, MPI_DOUBLE_PRECISION, comm, &
                        pending, error)
    call wait_for(pending)
    call MPI_Allgather(mine, n, MPI_DOUBLE_PRECISION, expected, n, MPI_DOUBLE_PRECISION, comm, error)
    call check('Iallgather', all(theirs == expected))

    mine = ramp(n * ranks, rank)
    call MPI_Ialltoall(mine, n, MPI_DOUBLE_PRECISION, theirs, n, MPI_DOUBLE_PRECISION, comm, &
                       pending, error)
    call wait_for(pending)
    call MPI_Alltoall(mine, n, MPI_DOUBLE_PRECISION, expected, n, MPI_DOUBLE_PRECISION, comm, error)
    call check('Ialltoall', all(theirs == expected))

    call MPI_Ibarrier(comm, pending, error)
    call wait_for(pending)
  end subroutine

  subroutine in_place(comm, n)
    COMM, intent(in) :: comm
    integer, intent(in) :: n
    real(8), allocatable, asynchronous :: values(:)
    real(8), allocatable :: expected(:)
    REQUEST :: pending

    values = ramp(n, rank)
    call MPI_Iallreduce(MPI_IN_PLACE, values, n, MPI_DOUBLE_PRECISION, MPI_SUM, comm, pending, error)
    call wait_for(pending)
    expected = ramp(n, rank)
    call MPI_Allreduce(MPI_IN_PLACE, expected, n, MPI_DOUBLE_PRECISION, MPI_SUM, comm, error)
    call check('Iallreduce in place', all(values == expected))

    values = ramp(n * ranks, rank)
    expected = values
    call MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values, n, MPI_DOUBLE_PRECISION, comm, &
                        pending, error)
    call wait_for(pending)
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, expected, n, MPI_DOUBLE_PRECISION, comm, &
                       error)
    call check('Iallgather in place', all(values == expected))
  end subroutine

  ! Two arrays as one datatype of absolute addresses, relative to MPI_BOTTOM.
  subroutine absolute_addresses(comm, n)
    COMM, intent(in) :: comm
    integer, intent(in) :: n
    real(8), allocatable, target, asynchronous :: values(:)
    integer, allocatable, target, asynchronous :: numbers(:)
    real(8), allocatable, asynchronous :: gathered(:)
    real(8), allocatable :: expected(:)
    integer, allocatable :: expected_numbers(:)
    integer(MPI_ADDRESS_KIND) :: addresses(2)
    integer :: member
    DATATYPE :: both, types(2)
    REQUEST :: pending

    values = ramp(n, rank)
    numbers = int(ramp(3, rank + 50))
    call MPI_Get_address(values, addresses(1), error)
    call MPI_Get_address(numbers, addresses(2), error)
    types = [MPI_DOUBLE_PRECISION, MPI_INTEGER]
    call MPI_Type_create_struct(2, [n, 3], addresses, types, both, error)
    call MPI_Type_commit(both, error)
    call MPI_Ibcast(MPI_BOTTOM, 1, both, ranks - 1, comm, pending, error)
    call wait_for(pending)
    call check('Ibcast from MPI_BOTTOM', all(values == ramp(n, ranks - 1)))
    call check('Ibcast from MPI_BOTTOM', all(numbers == int(ramp(3, ranks - 1 + 50))))
    call MPI_Type_free(both, error)

#if defined(MIXED_TYPES)
    values = ramp(n, rank)
    allocate (gathered(n * ranks))
    call MPI_Type_create_struct(1, [n], addresses, types, both, error)
    call MPI_Type_commit(both, error)
    call MPI_Iallgather(MPI_BOTTOM, 1, both, gathered, n, MPI_DOUBLE_PRECISION, comm, pending, error)
    call MPI_Type_free(both, error)
    call wait_for(pending)
    expected = [(ramp(n, member), member=0, ranks - 1)]
    call check('Iallgather from MPI_BOTTOM', all(gathered == expected))
#endif
    expected_numbers = int(ramp(3, ranks - 1 + 50))
    call check('what no call names stays', all(numbers == expected_numbers))
  end subroutine

  subroutine own_operator(comm, n)
    COMM, intent(in) :: comm
    integer, intent(in) :: n
    integer, allocatable, asynchronous :: mine(:), theirs(:)
    integer, allocatable :: expected(:)
    DATATYPE :: pair
    OP :: after
    REQUEST :: pending
    integer :: j

    call MPI_Type_contiguous(2, MPI_INTEGER, pair, error)
    call MPI_Type_commit(pair, error)
    call MPI_Op_create(compose, .false., after, error)
    mine = [(mod(j + rank, 3) - 1, j=1, 2 * n)]
    theirs = 0 * mine
    expected = theirs
    call MPI_Iallreduce(mine, theirs, n, pair, after, comm, pending, error)
    call wait_for(pending)
    call MPI_Allreduce(mine, expected, n, pair, after, comm, error)
    call check('Iallreduce with an operator in Fortran', all(theirs == expected))
    call MPI_Iscan(mine, theirs, n, pair, after, comm, pending, error)
    call MPI_Op_free(after, error)
    call wait_for(pending)
    call MPI_Op_create(compose, .false., after, error)
    call MPI_Scan(mine, expected, n, pair, after, comm, error)
    call check('Iscan with an operator in Fortran', all(theirs == expected))
    call MPI_Op_free(after, error)
    call MPI_Type_free(pair, error)
  end subroutine

  ! Every way to complete, over requests of collectives and messages mixed.
  subroutine completions(comm, n)
    COMM, intent(in) :: comm
    integer, intent(in) :: n
    integer, parameter :: many = 4
    real(8), allocatable, asynchronous :: reduced(:, :), mine(:, :)
    real(8), allocatable :: expected(:)
    REQUEST :: pending(many)
    STATUS :: states STATUSES(many)
    STATUS :: state ONE_STATUS
    integer :: way, which, outcount, indices(many), done
    logical :: flag

    allocate (reduced(n, many), mine(n, many), expected(n))
    do way = 1, 7
      do which = 1, many
        mine(:, which) = ramp(n, rank + way * which)
      end do
      reduced = -1
      call MPI_Irecv(reduced(:, 1), n, MPI_DOUBLE_PRECISION, mod(rank + ranks - 1, ranks), way, &
                     comm, pending(1), error)
      call MPI_Iallreduce(mine(:, 2), reduced(:, 2), n, MPI_DOUBLE_PRECISION, MPI_MIN, comm, &
                          pending(2), error)
      call MPI_Isend(mine(:, 1), n, MPI_DOUBLE_PRECISION, mod(rank + 1, ranks), way, comm, &
                     pending(3), error)
      call MPI_Iallreduce(mine(:, 4), reduced(:, 4), n, MPI_DOUBLE_PRECISION, MPI_SUM, comm, &
                          pending(4), error)
      select case (way)
      case (1)
        call MPI_Waitall(many, pending, MPI_STATUSES_IGNORE, error)
      case (2)
        call MPI_Waitall(many, pending, states, error)
      case (3)  ! not by its index: MPICH 4.0 gives f08 the one of C
        do done = 1, many
          call MPI_Waitany(many, pending, which, state, error)
        end do
      case (4)
        done = 0
        do while (done < many)
          call MPI_Waitsome(many, pending, outcount, indices, MPI_STATUSES_IGNORE, error)
          done = done + outcount
        end do
      case (5)
        flag = .false.
        do while (.not. flag)
          call MPI_Testall(many, pending, flag, states, error)
        end do
      case (6)
        do which = 1, many
          flag = .false.
          do while (.not. flag)
            call MPI_Test(pending(which), flag, MPI_STATUS_IGNORE, error)
          end do
        end do
      case (7)
        done = 0
        do while (done < many)
          call MPI_Testany(many, pending, which, flag, state, error)
          if (flag) done = done + 1
        end do
      end select
      do which = 1, many
        call check('all requests null', pending(which) == MPI_REQUEST_NULL)
      end do
      call check('a message between', &
                 all(reduced(:, 1) == ramp(n, mod(rank + ranks - 1, ranks) + way)))
      call MPI_Allreduce(mine(:, 2), expected, n, MPI_DOUBLE_PRECISION, MPI_MIN, comm, error)
      call check('the first of two at once', all(reduced(:, 2) == expected))
      call MPI_Allreduce(mine(:, 4), expected, n, MPI_DOUBLE_PRECISION, MPI_SUM, comm, error)
      call check('the second of two at once', all(reduced(:, 4) == expected))
    end do
  end subroutine

#if defined(PERSISTENT)
  subroutine persistent(comm, n)
    COMM, intent(in) :: comm
    integer, intent(in) :: n
    real(8), allocatable, asynchronous :: mine(:), theirs(:)
    real(8), allocatable :: expected(:)
    REQUEST :: plan
    integer :: turn

    allocate (mine(n), theirs(n), expected(n))
    call MPI_Allreduce_init(mine, theirs, n, MPI_DOUBLE_PRECISION, MPI_SUM, comm, MPI_INFO_NULL, &
                            plan, error)
    do turn = 1, 3
      mine = ramp(n, rank + turn)
      call MPI_Start(plan, error)
      call MPI_Wait(plan, MPI_STATUS_IGNORE, error)
      call MPI_Allreduce(mine, expected, n, MPI_DOUBLE_PRECISION, MPI_SUM, comm, error)
      call check('Allreduce_init', all(theirs == expected))
    end do
    call MPI_Request_free(plan, error)
    call check('request null after its end', plan == MPI_REQUEST_NULL)
  end subroutine
#endif
end program
