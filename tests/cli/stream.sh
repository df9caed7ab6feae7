#!/bin/sh
# SPDX-License-Identifier: MIT
# embeng checkpoint pack and unpack: through pipes and files, with tar and without. Speaks TAP.
# usage: stream.sh EMBENG-COMMAND
set -u

. "$(dirname "$0")/checks.sh"

golden=$(cd "$(dirname "$0")/../golden" && pwd)
cd "$folder" || exit 1
case $embeng in /*) ;; *) embeng=$OLDPWD/$embeng ;; esac

# same NAME A B: the rows of all tables and slots are the same
same()
{
	"$embeng" checkpoint ls "$2" --json >a.json && "$embeng" checkpoint ls "$3" --json >b.json &&
		python3 - "$embeng" "$2" "$3" <<'END' && report ok "$1" || report no "$1"
import json, subprocess, sys
command, *folders = sys.argv[1:]
a, b = (json.load(open(name)) for name in ("a.json", "b.json"))
assert a["tables"] == b["tables"] and a["step"] == b["step"]
for t in a["tables"]:
    for what in [t["name"]] + [t["name"] + "/" + s for s in t["slots"]]:
        rows = [subprocess.run([command, "checkpoint", "dump", f, what, "--format=npy"],
                               stdout=subprocess.PIPE, check=True).stdout for f in folders]
        assert rows[0] == rows[1] and len(rows[0]) > 80, what
END
}

expect 'help of pack' 0 checkpoint pack --help
says out 'help of pack, said' 'embeng checkpoint unpack - orders.ckpt'
expect 'help of unpack' 0 checkpoint unpack --help

# Every kind of checkpoint through a pipe, a file, and tar.
for kind in checkpoint checkpoint-delta checkpoint-mod checkpoint-shared checkpoint-widths; do
	"$embeng" checkpoint pack "$golden/$kind" | "$embeng" checkpoint unpack - "$kind.pipe" >out
	says out "$kind: through a pipe" "^$kind.pipe: step "
	same "$kind: the same rows" "$golden/$kind" "$kind.pipe"
	expect "$kind: verify" 0 checkpoint verify "$kind.pipe"
done
expect 'into a file' 0 checkpoint pack "$golden/checkpoint-delta" -o delta.tar --json
document 'into a file, document' 'd["command"] == "pack" and d["file"] == "delta.tar" and d["tables"] > 0'
[ "$(wc -c <delta.tar)" = "$(python3 -c 'import json; print(json.load(open("out"))["bytes"])')" ] &&
	report ok 'its size' || report no 'its size'
mkdir untarred && tar -xf delta.tar -C untarred 2>err
[ -s err ] && report no 'tar says nothing' || report ok 'tar says nothing'
same 'what tar unpacks is a checkpoint' "$golden/checkpoint-delta" untarred
python3 -c 'import tarfile; t = tarfile.open("delta.tar"); assert t.getnames()[-1] == "index.json"' &&
	report ok 'the index comes last' || report no 'the index comes last'
for format in ustar gnu pax; do
	tar -cf "$format.tar" --format=$format -C untarred .
	expect "$format: unpack" 0 checkpoint unpack $format.tar $format --json
	document "$format: document" "d['dir'] == '$format' and d['file'] == '$format.tar'"
	same "$format: the same rows" "$golden/checkpoint-delta" $format
done
python3 - <<'END'
import tarfile
with tarfile.open("python.tar", "w") as t:
    t.add("untarred", arcname=".")
END
expect 'python: unpack' 0 checkpoint unpack python.tar python
same 'python: the same rows' "$golden/checkpoint-delta" python
expect 'pack gives the same bytes again' 0 checkpoint pack gnu -o again.tar
cmp -s again.tar delta.tar && report ok 'the same bytes' || report no 'the same bytes'

# An older checkpoint of a step, into a folder that has one.
expect 'a second step' 0 checkpoint step gnu 99
expect 'pack an older one' 0 checkpoint pack gnu --step=99 -o old.tar
expect 'unpack it beside another' 0 checkpoint unpack old.tar python --keep=3
says out 'unpack it beside another, said' '^python: step 99, '
expect 'both are there' 0 checkpoint list python --json
document 'both are there, document' 'len(d["checkpoints"]) == 2 and d["checkpoints"][0]["step"] == 99'

# Names of rows go along.
printf 'a b c\nb c d\na b c\nb c d\na b d\n' >baskets
expect 'train' 0 train baskets -d soft:memory=64M --epochs=1 --dim=2 --min-count=1 --save=items.ckpt
expect 'pack names' 0 checkpoint pack items.ckpt -o items.tar
expect 'unpack names' 0 checkpoint unpack items.tar items.copy
cmp -s items.ckpt/embeng-items.names items.copy/embeng-items.names &&
	report ok 'the names are the same' || report no 'the names are the same'
expect 'verify names' 0 checkpoint verify items.copy

# Streams that are broken: the folder stays as it was.
expect 'a folder that has another' 0 checkpoint unpack again.tar other
expect 'a folder that has another, newer' 0 checkpoint step other 7 --keep=1
before=$(ls -A other; cat other/index.json)
head -c 2000 delta.tar >short.tar
expect 'a stream that ends early' 11 checkpoint unpack short.tar other
says err 'a stream that ends early, said' 'the stream, byte 2000: it ends there, within'
expect 'a stream that ends early, alone' 11 checkpoint unpack short.tar fresh
[ ! -e fresh ] && report ok 'no folder is left' || report no 'no folder is left'
cat delta.tar delta.tar >twice.tar
expect 'two streams' 11 checkpoint unpack twice.tar other
says err 'two streams, said' 'something follows the end of the checkpoint'
printf x >tail && cat delta.tar tail >tail.tar
expect 'a byte behind the end' 11 checkpoint unpack tail.tar other
python3 - <<'END'
data = bytearray(open("delta.tar", "rb").read())
data[1536 + 8 + int.from_bytes(data[1536:1544], "little") + 5] ^= 1
open("bad.tar", "wb").write(data)
END
expect 'a byte that changed' 11 checkpoint unpack bad.tar other --json
document 'a byte that changed, document' '"do not match their checksum" in d["error"]["message"]'
tar -cf outside.tar untarred
expect 'a tar of the folder' 11 checkpoint unpack outside.tar other
says err 'a tar of the folder, said' 'pack what is in the folder of a checkpoint, not the folder'
ln -s index.json untarred/link && tar -cf link.tar -C untarred . && rm untarred/link
expect 'a tar with a link' 11 checkpoint unpack link.tar other
says err 'a tar with a link, said' "member 'link' is neither a file nor a folder"
expect 'the same once more' 2 checkpoint unpack old.tar python
says err 'the same once more, said' 'is there already; the folder may have this checkpoint'
[ "$before" = "$(ls -A other; cat other/index.json)" ] && report ok 'the folder is as it was' ||
	report no 'the folder is as it was'
expect 'the folder verifies' 0 checkpoint verify other

# Refusals.
expect 'pack: no folder' 2 checkpoint pack
expect 'pack: two folders' 2 checkpoint pack a b
expect 'pack: no checkpoint' 2 checkpoint pack none -o none.tar
[ ! -e none.tar ] && report ok 'no file is left' || report no 'no file is left'
expect 'pack: a document and a stream' 2 checkpoint pack gnu --json
expect 'pack: a full disk' 5 checkpoint pack gnu -o /dev/full
says err 'pack: a full disk, said' '/dev/full: No space left'
expect 'unpack: no file' 2 checkpoint unpack
expect 'unpack: no folder' 2 checkpoint unpack delta.tar
expect 'unpack: too much' 2 checkpoint unpack delta.tar a b
expect 'unpack: no such file' 2 checkpoint unpack none.tar a
expect 'unpack: keep' 2 checkpoint unpack delta.tar a --keep=0
printf '' | "$embeng" checkpoint unpack - a 2>err
says err 'unpack: nothing' 'the stream, byte 0: it ends there'

finish
