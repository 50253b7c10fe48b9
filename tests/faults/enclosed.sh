#!/bin/sh
# enclosed.sh RUN REPORT SHM_SIZE COMMAND...: runs COMMAND, waits until none of its processes is
# left, and writes to REPORT what is: processes, entries of /dev/shm, System V objects.
# In namespaces of its own /dev/shm starts empty; then the first line of REPORT is "enclosed".
# WEFT_FAULTS_REACH=DIRECTORY: COMMAND runs as somebody else, who must get at it, whoever's home it
# lies in: the first directory above it that is closed to others is covered by one that is open.
run=$1 report=$2 size=$3
shift 3
: >"$report"
mount -t tmpfs -o "size=$size" tmpfs /dev/shm 2>/dev/null && echo enclosed >"$report"
above=
for part in $(echo "${WEFT_FAULTS_REACH%/*}" | tr / ' '); do
  above=$above/$part
  [ "$(stat -c %A "$above" | cut -c10)" = - ] || continue
  held=$(mktemp -d)
  mount --bind "$WEFT_FAULTS_REACH" "$held"
  mount -t tmpfs -o mode=755 open "$above"
  mkdir -p "$WEFT_FAULTS_REACH"
  mount --move "$held" "$WEFT_FAULTS_REACH"
  cd "$WEFT_FAULTS_REACH" || exit 1
  break
done
env WEFT_FAULTS_RUN="$run" "$@" </dev/null
status=$?
for _ in $(seq 100); do
  left=$(grep -lsa "WEFT_FAULTS_RUN=$run" /proc/[0-9]*/environ)
  [ -z "$left" ] && break
  sleep 0.1
done
for environ in $left; do
  pid=${environ#/proc/}
  pid=${pid%/environ}
  echo "process $pid $(cat "/proc/$pid/comm")" >>"$report"
  kill -9 "$pid"
done
ls -A /dev/shm | sed 's/^/shm /' >>"$report"
grep -q enclosed "$report" && tail -qn +2 /proc/sysvipc/* | sed 's/^/sysv /' >>"$report"
exit $status
