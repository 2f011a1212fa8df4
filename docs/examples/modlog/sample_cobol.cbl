       IDENTIFICATION DIVISION.
       PROGRAM-ID.    LNINT010.
       AUTHOR.        LENDING SYSTEMS.
       DATE-WRITTEN.  2016-02-15.
      *****************************************************************
      * LNINT010 - NIGHTLY INTEREST ACCRUAL OF THE LOAN PORTFOLIO     *
      *                                                               *
      * READS THE LOAN MASTER AND THE RATE TABLE, ACCRUES ONE DAY OF  *
      * INTEREST FOR EACH ACTIVE LOAN, AND WRITES THE ACCRUAL REPORT. *
      *****************************************************************
      * MODIFICATION LOG
      *
      * DATE        PROGRAMMER    TAG     DESCRIPTION
      * ----------  ------------  ------  -----------------------------
      * 2017-05-09  R. ALVAREZ    RA0509  BUG FIX: S0C7 ABEND WHEN
      *                                   LN-RATE-OVERRIDE CONTAINS
      *                                   SPACES
      *
      * 2018-11-21  M. OKAFOR     MO1121  PERFORMANCE: SEARCH ALL IN
      *                                   WS-RATE-TABLE INSTEAD OF A
      *                                   SEQUENTIAL SCAN
      *
      * 2019-08-02  J. LINDQVIST  JL0802  SECURITY: MASK LN-TAX-ID ON
      *                                   THE ACCRUAL REPORT
      *
      * 2020-03-17  M. OKAFOR     MO0317  ENHANCEMENT: MULTI-CURRENCY
      *                                   ACCRUAL, CONVERTED BY
      *                                   WS-FX-RATE
      *
      * 2021-10-04  P. DESAI      PD1004  REFACTOR: LEAP YEAR TEST MOVED
      *                                   TO 2600-SET-DAY-BASIS
      *
      * 2022-06-30  R. ALVAREZ    RA0630  BUG FIX: ROUND WS-DAILY-INT
      *                                   BEFORE IT IS ADDED TO
      *                                   LN-ACCRUED-INT
      *
      * 2023-01-12  P. DESAI      PD0112  RUN DATE IN THE REPORT TITLE
      *****************************************************************
       ENVIRONMENT DIVISION.
       INPUT-OUTPUT SECTION.
       FILE-CONTROL.
           SELECT LOAN-MASTER   ASSIGN TO LNMAST
                  ORGANIZATION IS SEQUENTIAL
                  FILE STATUS IS WS-LOAN-STATUS.
           SELECT RATE-FILE     ASSIGN TO LNRATE
                  ORGANIZATION IS SEQUENTIAL
                  FILE STATUS IS WS-RATE-STATUS.
           SELECT ACCRUAL-RPT   ASSIGN TO LNRPT.
       DATA DIVISION.
       FILE SECTION.
       FD  LOAN-MASTER.
       01  LOAN-RECORD.
           05  LN-NUMBER             PIC X(10).
           05  LN-STATUS             PIC X.
               88  LN-ACTIVE         VALUE 'A'.
           05  LN-PRODUCT            PIC X(4).
           05  LN-TAX-ID             PIC X(9).
           05  LN-CURRENCY           PIC X(3).
           05  LN-PRINCIPAL          PIC S9(9)V99 COMP-3.
           05  LN-RATE-OVERRIDE      PIC 9V9(5).
           05  LN-ACCRUED-INT        PIC S9(9)V99 COMP-3.
       FD  RATE-FILE.
       01  RATE-RECORD.
           05  RT-PRODUCT            PIC X(4).
           05  RT-RATE               PIC 9V9(5).
       FD  ACCRUAL-RPT.
       01  RPT-LINE                  PIC X(132).
       WORKING-STORAGE SECTION.
       01  WS-STATUS-FIELDS.
           05  WS-LOAN-STATUS        PIC XX.
           05  WS-RATE-STATUS        PIC XX.
           05  WS-EOF                PIC X VALUE 'N'.
               88  NO-MORE-LOANS     VALUE 'Y'.
       01  WS-RATE-COUNT             PIC 9(4) COMP VALUE ZERO.
       01  WS-RATE-TABLE.
      * MO1121 START
           05  WS-RATE-ENTRY OCCURS 1 TO 500 TIMES
                   DEPENDING ON WS-RATE-COUNT
                   ASCENDING KEY IS WS-RT-PRODUCT
                   INDEXED BY RT-IX.
      * MO1121 END
               10  WS-RT-PRODUCT     PIC X(4).
               10  WS-RT-RATE        PIC 9V9(5).
       01  WS-WORK-FIELDS.
           05  WS-RATE               PIC 9V9(5).
           05  WS-DAY-BASIS          PIC 9(3) VALUE 365.
      * RA0630 START
           05  WS-DAILY-INT          PIC S9(9)V99 COMP-3.
      * RA0630 END
      * MO0317 START
           05  WS-FX-RATE            PIC 9(3)V9(6) VALUE 1.
           05  WS-BASE-CURRENCY      PIC X(3) VALUE 'EUR'.
      * MO0317 END
       01  WS-RUN-DATE.
           05  WS-RUN-YEAR           PIC 9(4).
           05  WS-RUN-MONTH          PIC 99.
           05  WS-RUN-DAY            PIC 99.
       01  WS-YEAR-WORK.
           05  WS-QUOTIENT           PIC 9(4).
           05  WS-REM-4              PIC 9(3).
           05  WS-REM-100            PIC 9(3).
           05  WS-REM-400            PIC 9(3).
       01  WS-TITLE.
           05  FILLER                PIC X(24)
                   VALUE 'LOAN INTEREST ACCRUAL'.
      * PD0112 START
           05  WS-TITLE-DATE         PIC 9(8).
      * PD0112 END
       01  WS-DETAIL.
           05  WD-NUMBER             PIC X(10).
           05  FILLER                PIC X(2) VALUE SPACES.
      * JL0802 START
           05  WD-TAX-ID.
               10  WD-TAX-MASK       PIC X(5) VALUE '*****'.
               10  WD-TAX-LAST       PIC X(4).
      * JL0802 END
           05  FILLER                PIC X(2) VALUE SPACES.
           05  WD-INTEREST           PIC Z(8)9.99-.
       PROCEDURE DIVISION.
       0000-MAIN.
           PERFORM 1000-INITIALIZE
           PERFORM 2000-ACCRUE-LOAN UNTIL NO-MORE-LOANS
           PERFORM 9000-TERMINATE
           STOP RUN.
       1000-INITIALIZE.
           OPEN INPUT LOAN-MASTER RATE-FILE
           OPEN OUTPUT ACCRUAL-RPT
           ACCEPT WS-RUN-DATE FROM DATE YYYYMMDD
      * PD0112 START
           MOVE WS-RUN-DATE TO WS-TITLE-DATE
      * PD0112 END
           WRITE RPT-LINE FROM WS-TITLE
           PERFORM 1100-LOAD-RATE UNTIL WS-RATE-STATUS = '10'
           PERFORM 2600-SET-DAY-BASIS
           PERFORM 2100-READ-LOAN.
       1100-LOAD-RATE.
           READ RATE-FILE
               NOT AT END
                   ADD 1 TO WS-RATE-COUNT
                   MOVE RT-PRODUCT TO WS-RT-PRODUCT(WS-RATE-COUNT)
                   MOVE RT-RATE    TO WS-RT-RATE(WS-RATE-COUNT)
           END-READ.
       2000-ACCRUE-LOAN.
           IF LN-ACTIVE
               PERFORM 2200-FIND-RATE
               PERFORM 2300-COMPUTE-INTEREST
               PERFORM 2400-PRINT-LOAN
           END-IF
           PERFORM 2100-READ-LOAN.
       2100-READ-LOAN.
           READ LOAN-MASTER
               AT END SET NO-MORE-LOANS TO TRUE
           END-READ.
       2200-FIND-RATE.
           MOVE ZERO TO WS-RATE
      * MO1121 START
           SEARCH ALL WS-RATE-ENTRY
               AT END CONTINUE
               WHEN WS-RT-PRODUCT(RT-IX) = LN-PRODUCT
                   MOVE WS-RT-RATE(RT-IX) TO WS-RATE
           END-SEARCH
      * MO1121 END
      * RA0509 START
           IF LN-RATE-OVERRIDE IS NUMERIC
               IF LN-RATE-OVERRIDE > ZERO
                   MOVE LN-RATE-OVERRIDE TO WS-RATE
               END-IF
           END-IF.
      * RA0509 END
       2300-COMPUTE-INTEREST.
      * RA0630 START
           COMPUTE WS-DAILY-INT ROUNDED =
               LN-PRINCIPAL * WS-RATE / WS-DAY-BASIS
      * RA0630 END
      * MO0317 START
           IF LN-CURRENCY NOT = WS-BASE-CURRENCY
               PERFORM 2500-CONVERT-CURRENCY
           END-IF
      * MO0317 END
           ADD WS-DAILY-INT TO LN-ACCRUED-INT.
       2400-PRINT-LOAN.
           MOVE LN-NUMBER TO WD-NUMBER
      * JL0802 START
           MOVE LN-TAX-ID(6:4) TO WD-TAX-LAST
      * JL0802 END
           MOVE WS-DAILY-INT TO WD-INTEREST
           WRITE RPT-LINE FROM WS-DETAIL.
      * MO0317 START
       2500-CONVERT-CURRENCY.
           CALL 'FXRATE01' USING LN-CURRENCY WS-RUN-DATE WS-FX-RATE
           COMPUTE WS-DAILY-INT ROUNDED = WS-DAILY-INT * WS-FX-RATE.
      * MO0317 END
      * PD1004 START
       2600-SET-DAY-BASIS.
           DIVIDE WS-RUN-YEAR BY 4 GIVING WS-QUOTIENT
               REMAINDER WS-REM-4
           DIVIDE WS-RUN-YEAR BY 100 GIVING WS-QUOTIENT
               REMAINDER WS-REM-100
           DIVIDE WS-RUN-YEAR BY 400 GIVING WS-QUOTIENT
               REMAINDER WS-REM-400
           IF (WS-REM-4 = ZERO AND WS-REM-100 NOT = ZERO)
                   OR WS-REM-400 = ZERO
               MOVE 366 TO WS-DAY-BASIS
           ELSE
               MOVE 365 TO WS-DAY-BASIS
           END-IF.
      * PD1004 END
       9000-TERMINATE.
           CLOSE LOAN-MASTER RATE-FILE ACCRUAL-RPT.
