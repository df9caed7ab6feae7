#!/bin/sh
# SPDX-License-Identifier: MIT
# A hang, its dump in words, and the archive for whoever helps, in a virtual machine. Speaks TAP.
# usage: tests/vm/run -- tests/vm/report.sh BUILD-FOLDER
set -u

build=$1
. "$(dirname "$0")/tap.sh"
embeng=$build/runtime/embeng
archive=$folder/report.tar
person=jdoe4711
host=secrethost42

# dump: the file of the dump that is there
dump()
{
	ls /sys/class/devcoredump/devcd*/data
}

drop_dump()
{
	echo 1 >"$(dump)"
}

# decode NAME: the dump of the moment in words and as JSON, with nothing odd
decode()
{
	"$embeng" decode "$(dump)" >"$folder/$1.txt" && "$embeng" decode "$(dump)" --json >"$folder/$1.json"
}

# says FILE PATTERN: a file of the folder has a line like it
says()
{
	grep -E -e "$2" "$folder/$1" || { head -n 40 "$folder/$1"; false; }
}

# without FILE PATTERN: nothing in a file or folder is like it
without()
{
	! grep -rE -e "$2" "$1"
}

# member NAME: a file of the archive
member()
{
	tar -xf "$archive" -O "embeng-report/$1"
}

# has MEMBER PATTERN: a file of the archive has a line like it
has()
{
	member "$1" >"$folder/member" && says member "$2"
}

check 'events are recorded' alone switch_events 1
echo "$person:x:1234:1234:Jane Q. Doe:/home/$person:/bin/sh" >>/etc/passwd
hostname $host
echo "embeng-like gossip of $person: nothing of the driver" >/dev/kmsg
echo "usb 1-1: SerialNumber: A17 of $host" >/dev/kmsg

check 'a read of rows hangs' env EMBENG_HANG=rows "$build/tests/vm/vm-hang_dump"
check 'decode' decode rows
check 'the verdict names command, queue and table' says rows.txt \
	'^Command [0-9]+ of queue [0-9]+ \(TRANSFER\) of context [0-9]+ is at fault: ROWS_READ of table 1 \(users\), slot 0, 5 rows from row 3 on\. Cause stalled: the device stopped looking at a queue, after [1-9]'
check 'its cookie' says rows.txt '^  cookie +0x4d$'
check 'what came before it' says rows.txt '^command 0 of queue [0-9]+, line [0-9]+: MODEL_LOAD$'
check 'as JSON' says rows.json '"format": "devcoredump"'
check 'nothing is odd' says rows.json '"odd_count": 0'

check 'report' "$embeng" report -o "$archive" --json
cp "$folder/out" "$folder/report.json"
check 'it has the dump' has "dumps/$(basename "$(dirname "$(dump)")").txt" '^embeng devcoredump 1$'
check 'in words, too' has "dumps/$(basename "$(dirname "$(dump)")").decoded.txt" 'is at fault: ROWS_READ of table 1 \(users\)'
check 'registers in words' has device-0eb0:00:00.0/registers.decoded.txt '^  BOOT_STATE +0x3'
check 'the event log' has device-0eb0:00:00.0/events.txt 'BOOT|boot'
check 'counters and resets' has device-0eb0:00:00.0/attributes.txt '^resets/queues +1$'
check 'the trace, in words' has trace.decoded.txt "^reset, line [0-9]+|were written to the ring"
check 'the messages of the driver' has kernel-log.txt 'embeng 0eb0:00:00.0.*stalled, it is reset'
check 'parameters' has configuration.txt '^hang_ms = 10000$'
check 'versions' has versions.json '"firmware": "0\.1\.0\.0"'
check 'the index names all of it' has README '^  trace\.decoded\.txt +[0-9]+ bytes  the same in words'
check 'the document lists the files' says report.json '"name": "kernel-log.txt"'

mkdir "$folder/unpacked"
check 'any tar reads it' tar -xf "$archive" -C "$folder/unpacked"
check 'no name of the machine' without "$folder/unpacked" $host
check 'no name of a person' without "$folder/unpacked" "$person|Jane Q"
check 'no program' without "$folder/unpacked" 'vm-hang_dump'
check 'no messages of others' without "$folder/unpacked" 'SerialNumber|gossip'
check 'no addresses of the kernel' without "$folder/unpacked" '(^|[^0-9a-f])ffff[89a-e][0-9a-f]{11}'
check 'no address that the device was given' without "$folder/unpacked" 'ADMIN_RING +0x'

drop_dump
check 'a lookup hangs' env EMBENG_HANG=lookup "$build/tests/vm/vm-hang_dump"
check 'decode that' decode lookup
check 'the verdict names both tables' says lookup.txt \
	'\(INPUT\) of context [0-9]+ is at fault: LOOKUP of table 0 \(items\), table 1 \(users\), step 1\. Cause stalled'
check 'the features' says lookup.txt '^  descriptor +feature 1 of table 1 \(users\): DENSE, 3 samples, 3 ids$'
drop_dump

finish
