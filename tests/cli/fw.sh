#!/bin/sh
# SPDX-License-Identifier: MIT
# embeng fw: images of sources, what is refused and where, signatures that openssl agrees with.
# Speaks TAP.
# usage: fw.sh EMBENG-COMMAND IMAGE
set -u

. "$(dirname "$0")/checks.sh"

root=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
case $embeng in /*) ;; *) embeng=$PWD/$embeng ;; esac
case $2 in /*) shipped=$2 ;; *) shipped=$PWD/$2 ;; esac
sources=$root/firmware-loader/embeng
cd "$folder" || exit 1

# -- pack --

expect 'pack' 0 fw pack "$sources/firmware.txt" "$sources/self-tests.txt" -o a.fw
says out 'and says what' '^a.fw: 0.1.0 build 0, [0-9]* bytes, 7 self-tests passed$'
cmp -s a.fw "$shipped" && report ok 'the bytes of the build' || report no 'the bytes of the build'
sed -n '/^A source:/,/^\.Ed/p' "$root/docs/man/embeng-firmware.5" | sed '/^\.\|^A source/d' >page.txt
expect 'the example of the page packs' 0 fw pack page.txt -o page.fw --json
document 'as a document' '(d["schema"] == "embeng.fw/1" and d["command"] == "pack" and
	d["version"] == "1.0.0 build 0" and d["self_tests"] == 1)'
sed 's/^heartbeat_ms.*/heartbeat_ms = 0/' page.txt >bad.txt
expect 'a value outside its limits' 2 fw pack bad.txt -o bad.fw
says err 'is named with line and limits' 'bad.txt:11: heartbeat_ms is 0, allowed are 1 to 10000'
sed 's/^activations.*/activations = 12/' page.txt >bad.txt
expect 'a self-test that fails' 10 fw pack bad.txt -o bad.fw --json
document 'is named' '(d["refusal"]["boot_error"] == "SELF_TEST" and d["refusal"]["index"] == 0 and
	d["refusal"]["variant"] and d["error"]["code"] == 10)'
[ ! -e bad.fw ] && report ok 'nothing was written' || report no 'nothing was written'
expect 'a source that is not there' 2 fw pack nowhere.txt -o bad.fw
expect 'no source' 2 fw pack -o bad.fw
expect 'no -o' 2 fw pack page.txt

# -- inspect --

expect 'inspect' 0 fw inspect a.fw
says out 'the parameters' '^heartbeat_ms  *250 '
says out 'the strings' '^license=MIT$'
expect 'inspect as a document' 0 fw inspect a.fw --json
document 'with all of it' '([s["type"] for s in d["sections"]] == ["parameters", "self-tests",
	"strings"] and d["parameters"]["step_depth"] == 8 and d["strings"]["product"] == "embeng" and
	len(d["self_tests"]) == 7 and d["signed_length"] == 320 and
	d["parameters"]["minimum_version"] == "0.1.0 build 0" and d["build_id"] == "embeng 0.1.0")'
expect 'inspect nothing' 2 fw inspect
expect 'inspect two' 2 fw inspect a.fw page.fw
expect 'inspect what is not there' 2 fw inspect nowhere.fw

for verb in inspect verify; do
	"$embeng" fw $verb a.fw >/dev/full 2>err
	[ $? -eq 5 ] && report ok "stdout is full: $verb" || report no "stdout is full: $verb"
	says err "stdout is full, said: $verb" 'standard output: No space left'
done
expect 'a full disk' 5 fw pack "$sources/firmware.txt" "$sources/self-tests.txt" -o /dev/full
says err 'a full disk, said' '/dev/full: No space left'

# -- verify: each kind of fault at its byte --

expect 'verify' 0 fw verify a.fw
says out 'unsigned' 'signature unchecked; 7 self-tests passed on .*portable$'
python3 - <<'END'
import hashlib
import struct

good = open("a.fw", "rb").read()


def put(name, at, form, value, rehash=True, tail=b"", cut=None):
    image = bytearray(good[:cut] + tail)
    struct.pack_into("<" + form, image, at, value)
    for entry in 128, 192, 256:
        offset, length = struct.unpack_from("<QQ", image, entry + 8)
        if rehash and offset + length <= len(image):
            image[entry + 32:entry + 64] = hashlib.sha256(image[offset:offset + length]).digest()
    open(name + ".fw", "wb").write(image)


put("MAGIC.0", 0, "I", 7)
put("FORMAT.4", 4, "I", 9)
put("INTERFACE.8", 8, "I", 9)
put("INTERFACE.12", 12, "I", 99)
put("LENGTH.24", 24, "Q", len(good), tail=b"x")
put("RESERVED.127", 127, "B", 1)
put("SECTION.32", 32, "I", 0)
put("SECTION.36", 36, "I", 60)
put("SECTION.200", 200, "Q", 448)
put("SECTION_TYPE.192", 192, "I", 77)
put("DUPLICATE.256", 256, "I", 1)
put("HASH.320", 320, "I", 9, rehash=False)
put("PARAMETER.320", 320, "I", 3)
put("PARAMETER.344", 344, "Q", 1 << 63)
put("RESERVED.356", 356, "I", 1)
put("CONTENT.392", 392, "I", 2)
put("CONTENT.15170", 15170, "B", 7)
put("SELF_TEST.384", 5560, "I", 0x3f800001)
END
for file in *.[0-9]*.fw; do
	error=${file%.fw}
	expect "$error" 10 fw verify "$file" --json
	document "$error is said" "d['refusal']['boot_error'] + '.' + str(d['refusal']['offset']) == '$error'"
done
expect 'and to people' 10 fw verify HASH.320.fw
says err 'in a sentence' "refused at byte 320: a section does not match its hash (boot error HASH)"
head -c 100 a.fw >short.fw
expect 'a piece of a header' 10 fw verify short.fw
says err 'at its end' 'refused at byte 100: .*LENGTH'
expect 'a rollback' 10 fw verify a.fw --minimum 0.1.1
says err 'is a rollback' 'byte 16: .*VERSION'
expect 'none' 0 fw verify a.fw --minimum 0.1.0
expect 'no version' 2 fw verify a.fw --minimum 1
{
	cat "$sources/firmware.txt"
	printf 'filler = '
	head -c 4200000 /dev/zero | tr '\0' x
	echo
} >huge.txt
expect 'more than an image holds' 2 fw pack huge.txt -o huge.fw
says err 'with the limit' 'the image is too large: at most 4194304 bytes, of which .*strings 42000'
[ ! -e huge.fw ] && report ok 'nothing is written' || report no 'nothing is written'
head -c 4194305 /dev/zero >huge.fw
expect 'a huge file' 2 fw verify huge.fw

# -- sign: openssl made the keys and checks the signature --

for key in one two; do
	openssl genpkey -algorithm ed25519 -out $key.pem 2>/dev/null
	openssl pkey -in $key.pem -pubout -out $key.pub
done
openssl genpkey -algorithm x25519 -out other.pem 2>/dev/null
openssl pkey -in one.pem -aes256 -passout pass:x -out locked.pem

expect 'sign' 0 fw sign a.fw --key one.pem --json
document 'and says where' 'd["signature"] == "a.fw.sig" and d["signed_length"] == 320'
expect 'verify the signature' 0 fw verify a.fw --key one.pub --json
document 'which is good' 'd["signature"] == "good"'
head -c 320 a.fw >signed
openssl pkeyutl -verify -pubin -inkey one.pub -rawin -in signed -sigfile a.fw.sig >out 2>err &&
	report ok 'openssl agrees' || report no 'openssl agrees'
expect 'the key of another' 10 fw verify a.fw --key two.pub
says err 'is not the signer' 'the signature in a.fw.sig is not of this image and two.pub'
expect 'the signature of another' 10 fw verify page.fw --key one.pub --signature a.fw.sig
sed 's/^queues.*/queues = 255/' "$sources/firmware.txt" >other.txt
expect 'change one number' 0 fw pack other.txt "$sources/self-tests.txt" -o b.fw
expect 'it is another image' 10 fw verify b.fw --key one.pub --signature a.fw.sig
head -c 63 a.fw.sig >short.sig
expect 'a short signature' 10 fw verify a.fw --key one.pub --signature short.sig
expect 'no signature there' 2 fw verify page.fw --key one.pub
expect 'a signature and no key' 2 fw verify a.fw --signature a.fw.sig
expect 'elsewhere' 0 fw sign a.fw --key one.pem -o else.sig
cmp -s a.fw.sig else.sig && report ok 'the same one' || report no 'the same one'
expect 'a private key is no public one' 2 fw verify a.fw --key one.pem
expect 'a public key signs nothing' 2 fw sign a.fw --key one.pub
says err 'and it says how' 'openssl genpkey -algorithm ed25519'
expect 'a key of another kind' 2 fw sign a.fw --key other.pem
expect 'a key with a passphrase' 2 fw sign a.fw --key locked.pem
expect 'no key' 2 fw sign a.fw
expect 'a bad image is not signed' 10 fw sign HASH.320.fw --key one.pem
expect 'nowhere to write' 2 fw sign a.fw --key one.pem -o nowhere/a.sig

# -- the command itself --

expect 'help' 0 fw --help
for command in pack inspect verify sign; do
	expect "help of $command" 0 fw $command --help
done
expect 'no command' 2 fw
expect 'no such command' 2 fw burn --json
document 'as a document' 'd["schema"] == "embeng.fw/1" and d["error"]["code"] == 2'
expect 'options first' 2 fw --json

echo "1..$number"
exit $failed
