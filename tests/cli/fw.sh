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
says out 'and says what' '^a.fw: 0.1.0 build 0, [0-9]* bytes, 8 self-tests passed$'
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
	len(d["self_tests"]) == 8 and d["signature"] is None and
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
says out 'unsigned' ' bytes, unsigned; 8 self-tests passed on .*portable$'
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
put("LENGTH.24", 24, "Q", len(good) + 64)
put(f"SIGNATURE.{len(good) + 1}", 24, "Q", len(good), tail=b"x")
put(f"SIGNATURE.{len(good)}", 24, "Q", len(good), tail=bytes(128))
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
put("CONTENT.20610", 20610, "B", 7)
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

certificate()
{
	subject=$1
	shift
	openssl req -x509 -nodes -days 3650 -subj "/CN=$subject" -keyout "$subject.pem" -out "$subject.crt" "$@" \
		2>/dev/null
}
certificate one -newkey rsa:2048
certificate two -newkey rsa:2048
certificate curve -newkey ec -pkeyopt ec_paramgen_curve:prime256v1
certificate small -newkey rsa:1024
certificate edwards -newkey ed25519
openssl x509 -in one.crt -outform DER -out one.der
openssl pkey -in one.pem -aes256 -passout pass:x -out locked.pem
id=$(openssl x509 -in one.crt -noout -ext subjectKeyIdentifier | sed -n '2s/[ :]//gp' | tr A-F a-f)
bytes=$(wc -c <a.fw)

expect 'sign' 0 fw sign a.fw --key one.pem --certificate one.crt -o signed.fw --json
document 'and says how much' "d['signed_length'] == $bytes and d['signature']['offset'] == $bytes + 64"
document 'and by whom' "d['signature']['key_id'] == '$id' and d['output'] == 'signed.fw'"
cmp -s -n "$bytes" a.fw signed.fw && report ok 'the image is as it was' || report no 'the image is as it was'
expect 'verify the signature' 0 fw verify signed.fw --certificate one.der --json
document 'which is good' 'd["signer"] == "good"'
expect 'with no certificate' 0 fw verify signed.fw
says out 'it is unchecked' "signed by key $id (unchecked); 8 self-tests"
expect 'inspect' 0 fw inspect signed.fw
says out 'shows who signed' "^signature     signed by key $id\$"
expect 'inspect an unsigned one' 0 fw inspect a.fw
says out 'says so' '^signature     unsigned$'

part_of() { python3 -c "import json, sys; d = json.load(sys.stdin)['signature']; print(d['$1'])"; }
"$embeng" fw inspect signed.fw --json >parts
tail -c +$(($(part_of offset <parts) + 1)) signed.fw | head -c "$(part_of length <parts)" >message.p7s
openssl cms -verify -binary -inform DER -in message.p7s -content a.fw -certfile one.crt -nointern \
	-noverify -out copy.fw 2>err && cmp -s a.fw copy.fw &&
	report ok 'openssl agrees' || report no 'openssl agrees'

expect 'the key of another' 10 fw verify signed.fw --certificate two.crt
says err 'is not the signer' "signed.fw is not signed by the key of two.crt: it is signed by key $id"
expect 'an unsigned image' 10 fw verify a.fw --certificate one.crt
says err 'is unsigned' 'a.fw is not signed by the key of one.crt: it is unsigned'
cp signed.fw again.fw
expect 'sign again, in place' 0 fw sign again.fw --key curve.pem --certificate curve.crt
expect 'in place of the first' 0 fw verify again.fw --certificate curve.crt
expect 'which is gone' 10 fw verify again.fw --certificate one.crt

# -- a signature that openssl made --

openssl cms -sign -binary -in a.fw -signer one.crt -inkey one.pem -nocerts -nosmimecap -outform DER \
	-out a.p7s
expect 'take it' 0 fw sign a.fw --signature a.p7s --certificate one.crt -o taken.fw
expect 'it is good' 0 fw verify taken.fw --certificate one.crt
expect 'take it unseen' 0 fw sign a.fw --signature a.p7s -o unseen.fw
says out 'which names no key' 'unseen.fw: signed, by a key that is not named'
expect 'it is good, too' 0 fw verify unseen.fw --certificate one.crt
sed 's/^queues.*/queues = 255/' "$sources/firmware.txt" >other.txt
expect 'change one number' 0 fw pack other.txt "$sources/self-tests.txt" -o b.fw
expect 'it is another image' 10 fw sign b.fw --signature a.p7s --certificate one.crt -o c.fw
says err 'is said' 'b.fw: the signature in a.p7s is not of this image by one.crt'
[ ! -e c.fw ] && report ok 'nothing is written' || report no 'nothing is written'
expect 'taken unseen' 0 fw sign b.fw --signature a.p7s -o c.fw
expect 'it is found out' 10 fw verify c.fw --certificate one.crt
openssl cms -sign -binary -nodetach -in a.fw -signer one.crt -inkey one.pem -outform DER -out all.p7s
expect 'one with the image in it' 2 fw sign a.fw --signature all.p7s -o c.fw
head -c 100 a.p7s >short.p7s
{ cat a.p7s; echo; } >long.p7s
: >empty.p7s
for file in a.fw one.crt short.p7s long.p7s empty.p7s; do
	expect "$file is no signature" 2 fw sign a.fw --signature $file -o c.fw
done

# -- each part of a signed file, changed --

flip()
{
	python3 - "$1" "$2" <<'END'
import sys
data = bytearray(open("signed.fw", "rb").read())
data[int(sys.argv[1])] ^= 1
open(sys.argv[2], "wb").write(data)
END
}
for byte in 0 4 9 17 63; do
	flip $((bytes + byte)) flipped.fw
	expect "byte $byte of its head" 10 fw verify flipped.fw --json
	document 'is found' "d['refusal']['boot_error'] == 'SIGNATURE'"
done
for byte in 64 200 400 600; do
	flip $((bytes + byte)) flipped.fw
	expect "byte $byte of the signature" 10 fw verify flipped.fw --certificate one.crt
done
flip 40 flipped.fw
expect 'the build id' 10 fw verify flipped.fw --certificate one.crt
head -c $((bytes + 64)) signed.fw >cut.fw
expect 'a signature that was cut' 10 fw verify cut.fw

# -- what is no key --

expect 'a certificate is no key' 2 fw sign a.fw --key one.crt --certificate one.crt
says err 'and it says which' 'one.crt is no private key'
expect 'a key is no certificate' 2 fw sign a.fw --key one.pem --certificate one.pem
says err 'and it says how' 'openssl req -x509 -newkey rsa:4096'
expect 'the key of another certificate' 2 fw sign a.fw --key two.pem --certificate one.crt
says err 'is said' 'two.pem is not the key of the certificate'
for kind in small edwards; do
	expect "a kind that kernels lack: $kind" 2 fw sign a.fw --key $kind.pem --certificate $kind.crt
	says err 'is said' "$kind.crt is for a key that kernels cannot check"
done
expect 'a key with a passphrase' 2 fw sign a.fw --key locked.pem --certificate one.crt
expect 'no key' 2 fw sign a.fw --certificate one.crt
expect 'no certificate' 2 fw sign a.fw --key one.pem
expect 'a key and a signature' 2 fw sign a.fw --key one.pem --certificate one.crt --signature a.p7s
expect 'a bad image is not signed' 10 fw sign HASH.320.fw --key one.pem --certificate one.crt
expect 'nowhere to write' 2 fw sign a.fw --key one.pem --certificate one.crt -o nowhere/a.fw
cmp -s -n "$bytes" a.fw signed.fw && [ "$(wc -c <a.fw)" = "$bytes" ] &&
	report ok 'none of these changed the image' || report no 'none of these changed the image'

# -- show --

expect 'show' 0 fw show -d soft
says out 'the version' '^version       0.1.0.0$'
says out 'that nobody signed it' '^signature     unsigned$'
expect 'show it with settings' 0 fw show -d soft:cores=2,memory=1G --json
document 'as a document' '(d["device"][:4] == "soft" and d["version"] == "0.1.0.0" and
	d["image"] == "built in" and d["signature"] == "unsigned" and d["refused"] == "none")'
for device in soft0 sof pci:0000:ff:1f.7 /dev/accel/accel99; do
	expect "no device '$device'" 6 fw show -d "$device"
done
says err 'is named' '/dev/accel/accel99: no such device'
expect 'an argument too many' 2 fw show soft

# -- the command itself --

expect 'help' 0 fw --help
for command in pack inspect verify sign show; do
	expect "help of $command" 0 fw $command --help
done
expect 'no command' 2 fw
expect 'no such command' 2 fw burn --json
document 'as a document' 'd["schema"] == "embeng.fw/1" and d["error"]["code"] == 2'
expect 'options first' 2 fw --json

finish
