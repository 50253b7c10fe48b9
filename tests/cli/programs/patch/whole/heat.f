C     Heat in fixed form: labels that end loops, FORMAT between
C     statements, lines that go on, and COMMON in a subroutine.
C     EXPECT norm: changed
C     EXPECT shared: left: COMMON or EQUIVALENCE
C     EXPECT guarded: left: may leave this place
      double precision function work(seed)
      integer seed, i
      work = seed
      do 10 i = 1, 20000
        work = 0.5d0*work + mod(i, 3)
   10 continue
      end

      subroutine norm(answer)
      implicit none
      include 'mpif.h'
      double precision answer, u(20000), all(20000), w(20000), work
      integer i, ierr
      do 20 i = 1, 20000
        u(i) = mod(i, 7)
        w(i) = i
   20 continue
      call MPI_ALLREDUCE(u, all, 20000,
     &                   MPI_DOUBLE_PRECISION,                          ! CALL norm
     &                   MPI_SUM, MPI_COMM_WORLD, ierr)
      do 30 i = 2, 20000
        w(i) = w(i) + 0.5d0*w(i - 1)
        if (w(i) .gt. 1d9) goto 30
        w(i) = w(i) - 1
   30 continue
  100 format (f12.3)
      answer = w(20000) + work(3)
      do 40 i = 1, 20000
        answer = answer + all(i)                                        ! USE norm
   40 continue
      if (answer .lt. 0) write (*, 100) answer
      end

      subroutine shared(answer)
      implicit none
      include 'mpif.h'
      double precision answer, part(20000), total(20000), work
      common /fields/ part, total
      integer ierr
      call MPI_ALLREDUCE(part, total, 20000, MPI_DOUBLE_PRECISION,      ! CALL shared
     &                   MPI_MAX, MPI_COMM_WORLD, ierr)
      answer = work(4)
      answer = answer + total(5)                                        ! USE shared
      end

      subroutine guarded(bad, answer)
      implicit none
      include 'mpif.h'
      logical bad
      double precision answer, total(20000), work
      integer i, ierr
      do i = 1, 20000
        total(i) = i
      end do
      answer = 0
      call MPI_BCAST(total, 20000, MPI_DOUBLE_PRECISION, 0,             ! CALL guarded
     &               MPI_COMM_WORLD, ierr)
      if (bad) goto 90
      answer = work(5)
      answer = answer + total(6)                                        ! USE guarded
   90 continue
      end

      program main
      implicit none
      include 'mpif.h'
      double precision answers(3), part(20000), total(20000)
      common /fields/ part, total
      integer rank, ierr, i, time
      call MPI_INIT(ierr)
      do i = 1, 20000
        part(i) = i
      end do
      do time = 1, 15
        call norm(answers(1))
        call shared(answers(2))
        call guarded(time .eq. 4, answers(3))
      end do
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      if (rank .eq. 0) print '(es20.12)', answers
      call MPI_FINALIZE(ierr)
      end
