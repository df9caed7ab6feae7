#!/bin/sh
# SPDX-License-Identifier: MIT
# Recordings of the soft device: any program is recorded, a replay gives the same, and names the
# command whose result is another one. Speaks TAP.
# usage: record.sh EMBENG-COMMAND ASK-NOW-PROGRAM
set -u

. "$(dirname "$0")/checks.sh"

ask_now=$2
root=$(cd "$scripts/../.." && pwd) || exit 1
run=$folder/run.ebrc
for i in $(seq 40); do
	echo "w$((i % 6)) w$(((i + 1) % 6)) w$(((i + 2) % 6))"
done >"$folder/baskets.txt"

# edit KIND FILE: copies the recording with one byte of an operand changed and its checksum made right.
# KIND is gradient (a byte of what the first UPDATE reads) or id (of what the first LOOKUP reads).
edit()
{
	python3 - "$run" "$@" <<'END'
import struct, sys
table = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
    table.append(n)
def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xffffffff
data, kind = bytearray(open(sys.argv[1], "rb").read()), sys.argv[2]
opcode = {"gradient": 3, "id": 2}[kind]
at, memory = 0, []
while at < len(data):
    magic, what, _, length, _, _, _ = struct.unpack_from("<IHHQQII", data, at)
    if what == 8:
        memory.append((at, length))
    if what == 9:
        if struct.unpack_from("<H", data, at + 48)[0] == opcode:
            break
        memory = []
    at += length
# The last operand of an UPDATE is a gradient; of a LOOKUP the ids are its longest one.
at, length = memory[-1] if kind == "gradient" else max(memory, key=lambda m: m[1])
bytes_of = struct.unpack_from("<Q", data, at + 56)[0]
place = at + 64 + (bytes_of - 2 if kind == "gradient" else 0)
data[place] ^= 1
struct.pack_into("<I", data, at + 28, 0)
struct.pack_into("<I", data, at + 28, crc32c(data[at:at + length]))
open(sys.argv[3], "wb").write(data)
END
}

# -- recording --

EMBENG_RECORD=$run "$embeng" train "$folder/baskets.txt" -d soft:cores=2,memory=64M --min-count 1 \
	--epochs 1 --dim 4 --save "$folder/saved" >"$folder/out" 2>"$folder/err" &&
	report ok 'a training is recorded' || report no 'a training is recorded'
[ -s "$run" ] && report ok 'the file is there' || report no 'the file is there'
expect 'by the name of a device' 0 validate -d "soft:record=$folder/named.ebrc" device
[ -s "$folder/named.ebrc" ] && report ok 'its file is there' || report no 'its file is there'
expect 'a file that cannot be made' 2 validate -d "soft:record=$folder/none/x" device
says err 'is named' "the recording $folder/none/x cannot be written: No such file or directory"
EMBENG_RECORD=$folder/many "$embeng" conform -d soft "$root/tests/vectors/frozen" >"$folder/out" 2>&1
[ -s "$folder/many" ] && [ -s "$folder/many.2" ] && report ok 'each device has its file' ||
	report no 'each device has its file'

# -- the same --

expect 'replay' 0 replay "$run"
says out 'all is the same' '^the same: every status and every byte$'
expect 'on other cores and kernels' 0 replay "$run" --cores 5 --variant portable
says out 'they are used' ' on 5 cores (portable), '
expect 'as JSON' 0 replay "$run" --json
document 'it compares commands and outputs' "(d['verdict'] == 'same' and d['difference'] is None and
	d['commands'] == d['completions'] > 10 and d['outputs'] > 5 and d['output_bytes'] > 100 and
	d['played'] == d['entries'] and d['problem'] is None and d['unfinished'] is None)"
for file in "$folder"/many*; do
	"$embeng" replay "$file" --cores 3 >>"$folder/all" 2>&1 || echo "$file differs"
done >"$folder/out" 2>"$folder/err"
[ ! -s "$folder/out" ] && report ok 'vectors are the same' || report no 'vectors are the same'

# -- statistics at whatever step the model is --

EMBENG_RECORD=$folder/now.ebrc "$ask_now" 100 >"$folder/out" 2>"$folder/err" &&
	report ok 'a program asks while it trains' || report no 'a program asks while it trains'
says out 'its row is right' '^[0-9]* answers, row 41 is -4.6875, expected -4.6875$'
answers=$(sed -n 's/ answers.*//p' "$folder/out")
for i in 1 2; do
	expect "its recording has the step of each answer, replay $i" 0 replay "$folder/now.ebrc" --json
	document "replay $i compares the answers" "(d['verdict'] == 'same' and d['skipped_outputs'] == 0 and
		d['outputs'] > $answers > 0)"
done

# -- different --

edit gradient "$folder/other.ebrc"
expect 'a gradient with another byte' 1 replay "$folder/other.ebrc"
says out 'the command is named' '^  command   [A-Z_]* .*(context 0, queue [0-9]*, index [0-9]*)$'
expect 'as JSON, too' 1 replay "$folder/other.ebrc" --json
document 'with the table and both values' "(d['verdict'] == 'different' and
	'of table ' in d['difference']['what'] and
	d['difference']['recorded'] != d['difference']['here'] and
	d['played'] < d['entries'] and d['difference']['offset'] > 0)"
edit id "$folder/id.ebrc"
expect 'an id with another bit' 1 replay "$folder/id.ebrc" --json
document 'the LOOKUP is named' "d['difference']['command'].startswith('LOOKUP of step 1 (')"

# -- cut and damaged --

size=$(wc -c <"$run")
head -c $((size - 5)) "$run" >"$folder/cut.ebrc"
expect 'a file without its last bytes' 0 replay "$folder/cut.ebrc"
says out 'it is said' '^the recording has no end: the file ends inside of entry'
head -c $((size / 2)) "$run" >"$folder/half.ebrc"
expect 'half a file' 0 replay "$folder/half.ebrc" --json
document 'is played as far as it goes' "(d['verdict'] == 'same' and 'inside of entry' in d['problem'] and
	d['commands'] > 0)"
python3 -c 'import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[4000] ^= 1
open(sys.argv[2], "wb").write(data)' "$run" "$folder/bad.ebrc"
expect 'a file with a wrong byte' 11 replay "$folder/bad.ebrc"
says out 'its place is named' 'the checksum of entry 1 at byte 80 is wrong'
expect 'no recording' 2 replay "$folder/baskets.txt"
says err 'it is said' "$folder/baskets.txt is no recording"
expect 'no file' 2 replay "$folder/none"
expect 'two files' 2 replay "$run" "$run"
expect 'no argument' 2 replay
expect 'cores that are none' 2 replay "$run" --cores 0
expect 'a variant that is none' 7 replay "$run" --variant none

# -- in words --

expect 'decode' 0 decode "$run"
says out 'a command' ': UPDATE, step 1, command 0 of queue '
says out 'the end' '^Nothing is odd\.$'
expect 'decode of a cut file' 1 decode "$folder/half.ebrc" --json
document 'the cut is odd' "d['format'] == 'recording' and 'inside of entry' in d['odd'][-1]['what']"
finish
