#!/bin/sh
# SPDX-License-Identifier: MIT
# embeng decode: each format in words, and each oddness that is put into a file is named. Speaks TAP.
# usage: decode.sh EMBENG-COMMAND DECODE-FILES-PROGRAM IMAGE
set -u

. "$(dirname "$0")/checks.sh"
for path in "$2" "$3"; do
	case $path in /*) ;; *) path=$PWD/$path ;; esac
	set -- "$@" "$path"
done
maker=$4 image=$5
case $embeng in /*) ;; *) embeng=$PWD/$embeng ;; esac
cd "$folder" || exit 1
mkdir good
"$maker" good || { echo 'Bail out! no files'; exit 1; }

# patch FORMAT OFFSET WIDTH VALUE: the good file with a number changed, as "odd"
patch()
{
	python3 - "$@" <<'END'
import sys
name, at, width, value = sys.argv[1], *(int(word, 0) for word in sys.argv[2:])
data = bytearray(open("good/" + name, "rb").read())
data[at:at + width] = value.to_bytes(width, "little")
open("odd", "wb").write(data)
END
}

# edit FORMAT PATTERN: a good text changed by sed, as "odd"
edit()
{
	sed -e "$2" "good/$1" >odd
}

# odd NAME FORMAT PLACE PATTERN: decode of "odd" finds it, and at that line or byte alone. PLACE is
# "byte N" or "line N".
odd()
{
	expect "$1" 1 decode odd
	says out "$1: the place and the words" "^  $3, .*$4"
	expect "$1, as JSON" 1 decode odd --json
	document "$1: as a document" "(d['format'] == '$2' and d['odd_count'] >= 1 and
		any(o['${3%% *}' if '${3%% *}' == 'line' else 'offset'] == ${3#* } for o in d['odd']))"
}

# -- good files --

for format in recording blob lookup update rows partition exchange ring registers devcoredump trace; do
	expect "$format" 0 decode "good/$format"
	says out "$format: nothing is odd" '^Nothing is odd\.$'
	expect "$format as JSON" 0 decode "good/$format" --json
	document "$format: as a document" "(d['schema'] == 'embeng.decode/1' and d['format'] == '$format' and
		d['odd'] == [] and d['odd_count'] == 0 and d['part_count'] == len(d['parts']) > 0)"
done
expect 'a firmware image' 0 decode "$image"
says out 'its version' '^A firmware image of version 0\.1\.0 build 0\.'
expect 'formats' 0 decode --list-names
cp out formats
expect 'help' 0 decode --help
tr -s ' ,\n' '\n\n\n' <out | sort -u >words
sort formats | comm -23 - words >missing
[ -s formats ] && [ ! -s missing ] && report ok 'help names each format' ||
	report no "help names each format: $(cat missing)"
expect 'the name of a file says nothing' 0 decode "$image" --json
document 'the contents do' 'd["format"] == "firmware" and d["parts"][0]["fields"][0]["value"] == 1'

# -- a dump --

"$embeng" decode good/devcoredump >out
says out 'the verdict' '^Command 1 of queue 7 (TRANSFER) of context 4 is at fault: ROWS_WRITE of table 1 (users), slot 0, 2 rows from row 1 on\. Cause standstill: the device had work and made no progress, after 1\.204 s'
says out 'a command of the dump' '^command 2 of queue 7, line 27: STATS of table 0 (items)$'
says out 'a field in words' '^  opcode  *10  STATS$'
says out 'what became of it' '^  was  *not taken by the device$'
edit devcoredump 's/^embeng devcoredump 1/embeng devcoredump 9/'
odd 'a version that is unknown' devcoredump 'line 1' 'the version is 9, known is 1'
edit devcoredump 's/sq_tail 3 sq_head 2/sq_tail 1 sq_head 2/'
odd 'a head past its tail' devcoredump 'line 22' 'sq_head 2 is past sq_tail 1'
edit devcoredump 's/cq_tail 1 sent 1/cq_tail 1 sent 2/'
odd 'a completion that was lost' devcoredump 'line 22' 'sent is 2 and cq_tail is 1: 1 completions were lost'
edit devcoredump 's/length 1136 arg 0x0/length 1136 arg 0x5/'
odd 'an id outside of its table' devcoredump 'line 27' 'the model has no table 5: it has 2 tables'
edit devcoredump 's/descriptor table 1 slot 0/descriptor table 8 slot 0/'
odd 'a descriptor of no table' devcoredump 'line 26' 'names table 8, and the model has 2 tables'
edit devcoredump 's/opcode 7 flags 0x0/opcode 7 flags 0x40/'
odd 'a reserved flag' devcoredump 'line 25' "the engine refuses the command with RESERVED, field 'flags', value 0x40"
edit devcoredump 's/opcode 10 /opcode 77 /'
odd 'an unknown opcode' devcoredump 'line 27' 'the opcode 77 is unknown'
edit devcoredump 's/    command 2 opcode/    command 9 opcode/'
odd 'an index that jumps' devcoredump 'line 27' 'the index is 9 where 2 comes next'
edit devcoredump 's/status 0 flags 2/status 99 flags 3/'
odd 'an unknown status' devcoredump 'line 28' 'the status 99 is unknown'
edit devcoredump 's/register MAGIC .*/register MAGIC 0xffffffff/'
odd 'a device that does not answer' devcoredump 'line 8' 'does not answer on the bus'
edit devcoredump 's/feature 1 table 1/feature 1 table 6/'
odd 'a feature of no table' devcoredump 'line 18' 'feature 1 is of table 6, and the model has 2 tables'
edit devcoredump '14s/.*/words of somebody/'
odd 'a line of somebody else' devcoredump 'line 14' 'the line is none that the driver writes'
head -c 1000 good/devcoredump >odd
odd 'a dump that was cut' devcoredump 'line 27' 'the file ends inside of this line'

# -- a trace --

"$embeng" decode good/trace >out
says out 'an event in words' '^submit, line 3: 2 commands from index 0 on were written to the ring$'
says out 'a command of the driver' '^admin, line 7: .*INVALIDATE for context 4'
! grep -q 'my task' out && report ok 'no task is named' || report no 'no task is named'
printf '   t-1 [001] d..1. 12.000000001: embeng_command: context=4 queue=7 kind=1 index=0 opcode=2 cookie=0x5 step=1 after=0\n' >command.txt
expect 'a command by itself' 0 decode command.txt
says out 'has its name' '^command, line 1: the command LOOKUP with cookie 0x5 was written to the INPUT queue$'
says out 'and its time' '^  time  *12\.000000001 s$'
sed 's/opcode=2/opcode=99/' command.txt >command2.txt
expect 'an opcode that is none' 1 decode command2.txt
says out 'is odd' 'the opcode 99 is unknown'
printf '   t-1 [001] d..1. 13.000000: embeng_submit: context=4 queue=7 index=1 count=1\n' |
	cat good/trace - >odd
odd 'an index that goes back' trace 'line 8' 'the submitted index goes back, from 2 to 1'
edit trace 's/embeng_event:.*/&\n  <idle>-0 [000] d.h1. 12.000310: embeng_event: context=4 queue=7 cq_tail=0 report=1/'
odd 'completions that go back' trace 'line 7' 'cq_tail goes back, from 1 to 0'
says out 'on the JSON, too' 'the report goes back, from 2 to 1'
edit trace 's/result=0/result=-110/'
odd 'a command of the driver that failed' trace 'line 7' 'INVALIDATE failed: -110'
for format in trace devcoredump; do
	sed 's/$/\r/' good/$format >crlf
	expect "$format with lines that end as on another system" 0 decode crlf
	says out "$format: nothing is odd in it" '^Nothing is odd\.$'
done
edit trace 's/12.000300/11.000000/'
odd 'time that goes back' trace 'line 6' 'the time goes back'
edit trace 's/queue=7 index=0 count=2$/queue=7 index=zero count=2/'
odd 'a value that is none' trace 'line 3' "the event has no 'index' where it must be"

# -- a blob --

"$embeng" decode good/blob >out
says out 'a table' '^record TABLE 0, byte 64: 100 rows of 8 columns, sum, optimizer SGD$'
says out 'its name' "^record NAME 0, .*TABLE 0 is called 'items'\$"
says out 'the whole table of a part' '^record SHARD 0, byte 256: table 0 is a part of a table of 400 rows and 24 columns: its row i is row 1 + i \* 4, its column j is column 16 + j$'
patch blob 72 8 101
odd 'a checksum' blob 'byte 20' 'BLOB_CRC'
patch blob 4 4 7
odd 'a version' blob 'byte 4' 'value 7 .*allowed 1 '
patch blob 68 4 4096
odd 'a record that leaves the blob' blob 'byte 68' "the record's length 4096 leaves the blob"
head -c 100 good/blob >odd
odd 'a blob that was cut' blob 'byte 68' 'leaves the blob, which has 36 more bytes'

# -- descriptors --

"$embeng" decode good/lookup >out
says out 'a feature of a lookup' '^feature 0, byte 32: CSR, 3 samples, 7 ids$'
patch lookup 39 1 5
odd 'a reserved byte of a lookup' lookup 'byte 39' 'reserved is 0x5, and must be 0'
patch lookup 48 8 9
odd 'ids that are not as long as their count' lookup 'byte 80' 'ids has 56 bytes, and 9 elements of 8 bytes need 72'
patch lookup 36 1 77
odd 'an unknown form' lookup 'byte 36' 'the form 77 is none of a LOOKUP'
patch lookup 160 4 9
odd 'features out of order' lookup 'byte 160' 'feature 9 stands where feature 1 must be'
patch update 12 4 8
odd 'an unknown flag of an update' update 'byte 12' 'the flags 0x8 are unknown'
patch rows 84 4 1
odd 'a reserved field of rows' rows 'byte 84' 'reserved is 0x1'
patch lookup 84 4 0
odd 'a key that nobody has' lookup 'byte 80' 'ids has a key of generation 0'
patch partition 16 4 3
odd 'cores that do not divide' partition 'byte 16' '3 cores of the device do not divide 4'
patch exchange 16 4 6
odd 'an unknown flag of an exchange' exchange 'byte 16' 'the flags 0x6 are unknown'
patch exchange 104 1 4
odd 'a form that no exchange has' exchange 'byte 104' 'the form 4 is none of an exchange'

# -- a ring --

"$embeng" decode good/ring >out
says out 'how large the rings are' '^header, byte 0: rings of 4 commands and 8 completions with the doorbell, of kind TRANSFER$'
says out 'a command of a ring' '^command 0, byte 256: STATS of table 2$'
says out 'a command that waits' '^command 2, byte 384: NOP'
says out 'a completion' '^completion 0, byte 512: DONE$'
patch ring 1024 4 1
odd 'a head past the tail of the doorbell' ring 'byte 0' 'sq_head 2 is past sq_tail 1'
patch ring 8 4 1
odd 'a reserved word of the header' ring 'byte 0' '1 of 37 reserved words are not 0'
patch ring 260 4 1
odd 'a reserved field of a command' ring 'byte 260' "RESERVED, field 'reserved'"
patch ring 532 4 9
odd 'a completion of a command that nobody took' ring 'byte 532' 'it is of command 9, and the device has taken the commands below 2'
patch ring 196 4 9
odd 'a state that is unknown' ring 'byte 192' 'the state 9 of the queue is unknown'

# -- registers --

"$embeng" decode good/registers >out
says out 'an event of the log' '^ *2112  event  *1 at 77 ns: POWER_ON'
says out 'with its meaning' '(the engine came up)$'
says out 'the field of a register' '  BOOT_STATE\.STATE  *RUNNING: '
says out 'half a register' '  INTERFACE\.MAJOR  *[0-9][0-9]*$'
patch registers 172 4 1
odd 'a fault of the device' registers 'byte 172' 'STATUS is 1'
patch registers 2112 4 5
odd 'an event out of place' registers 'byte 2112' 'event 5 stands where event 1 must be'

# -- firmware --

python3 - "$image" <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[330] ^= 1
open("odd", "wb").write(data)
END
odd 'a section that was changed' firmware 'byte 320' 'a device refuses the image with HASH'

# -- checkpoints --

printf 'a b c\nb c a\na c b\n' >baskets
"$embeng" train baskets -d soft --epochs 1 --min-count 1 --dim 4 --batch 2 --seed 1 --save ckpt >/dev/null 2>err
expect 'the index of a checkpoint' 0 decode ckpt/index.json --json
document 'with its tables' 'd["format"] == "index" and any(p["part"] == "table 0" for p in d["parts"])'
for shard in ckpt/*.safetensors; do
	expect 'a shard' 0 decode "$shard"
	says out 'its tensors' '^tensor 1, byte [0-9]*: .*/parameters: f32 of rank 2$'
	head -c 20 "$shard" >odd
	expect 'a shard that was cut' 1 decode odd
	break
done
cp ckpt/index.json elsewhere
expect 'an index of another name' 1 decode elsewhere
says out 'says how to read it' 'call it index\.json, in a folder with its shards'

# -- what is refused --

expect 'no file' 2 decode
expect 'two files' 2 decode good/blob good/ring
expect 'a file that is not there' 2 decode nowhere
expect 'a format that is not there' 2 decode good/blob --as bolb
expect 'a file of no format' 2 decode /etc/passwd --json
document 'as a document' 'd["schema"] == "embeng.decode/1" and d["error"]["code"] == 2'
truncate -s 300M huge
expect 'a file that is too large' 2 decode huge
says err 'with the limit' 'huge is too large; it may have at most 268435456 bytes'
rm huge
: >empty
expect 'an empty file' 2 decode empty
expect 'an empty file as a ring' 1 decode empty --as ring
expect 'a dump as a ring' 1 decode good/devcoredump --as ring
"$embeng" decode good/blob >/dev/full 2>err
[ $? -eq 5 ] && report ok 'stdout is full' || report no 'stdout is full'
printf 'embeng devcoredump 1\ndevice \033[31m\n' >odd
expect 'control characters' 1 decode odd
! grep -q "$(printf '\033')" out && report ok 'do not reach the terminal' || report no 'do not reach the terminal'

finish
