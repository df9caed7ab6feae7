#!/bin/sh
# SPDX-License-Identifier: MIT
# The driver and the emulated device check who signed firmware: images that are refused cost nothing,
# the recovery image boots, and the rollback limit holds. In a virtual machine, with keys that are
# made here. Speaks TAP.
# usage: tests/vm/run -- tests/vm/firmware.sh BUILD-FOLDER [PARAMETER...]
set -u

build=$1
shift
place=$*
source=$(cd "$(dirname "$0")/../.." && pwd)
. "$source/tests/vm/tap.sh"
address=0eb0:00:00.0
function=/sys/bus/pci/devices/$address
upload=/sys/class/firmware/embeng-$address
faults=/sys/kernel/debug/embeng_emu/0/faults
modules=$build/kmod-$(uname -r)/kmod
image=/lib/firmware/embeng/embeng.fw
recovery=/lib/firmware/embeng/recovery.fw
embeng=$build/runtime/embeng
highest=65535.65535.65535.65535

# make_key NAME OPTION...: NAME.pem, its certificate NAME.crt and NAME.der, and its id in NAME.id
make_key()
{
	key=$folder/$1
	subject=$1
	shift
	openssl req -x509 -nodes -days 3650 -subj "/CN=$subject" -keyout "$key.pem" -out "$key.crt" "$@" &&
		openssl x509 -in "$key.crt" -outform DER -out "$key.der" &&
		openssl x509 -in "$key.crt" -noout -ext subjectKeyIdentifier |
		sed -n '2s/[ :]//gp' | tr A-F a-f >"$key.id"
}

# make_image NAME VERSION MINIMUM [KEY]: NAME.fw, signed if there is a key
make_image()
{
	sed "s/^version = .*/version = $2/; s/^minimum_version = .*/minimum_version = $3/" \
		"$source/firmware-loader/embeng/firmware.txt" >"$folder/$1.txt"
	"$embeng" fw pack "$folder/$1.txt" "$source/firmware-loader/embeng/self-tests.txt" \
		-o "$folder/$1.fw" || return 1
	[ $# -lt 4 ] || sign "$1" "$4"
}

sign()
{
	"$embeng" fw sign "$folder/$1.fw" --key "$folder/$2.pem" --certificate "$folder/$2.crt"
}

make_all()
{
	make_key one -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 && make_key two -newkey rsa:2048 &&
		make_image plain 0.1.0 0.1.0 && make_image evil $highest $highest &&
		make_image kept 0.2.0 0.1.0 one && make_image newer 0.3.0 0.3.0 one &&
		make_image older 0.1.5 0.1.0 one && make_image other 0.3.0 0.1.0 two &&
		make_image top $highest $highest one
}

# install NAME FILE: as the file that the driver reads
install_image()
{
	cp "$folder/$1.fw" "$2"
}

# is FILE TEXT: an attribute says so
is()
{
	[ "$(cat "$function/$1")" = "$2" ] || { echo "$1: $(cat "$function/$1")"; false; }
}

bind()
{
	echo "$address" >/sys/bus/pci/drivers/embeng/bind && [ -d "$function/accel" ]
}

unbind()
{
	echo "$address" >/sys/bus/pci/drivers/embeng/unbind && [ ! -e "$function/accel" ]
}

rebind()
{
	unbind && bind
}

logged()
{
	dmesg | tail -n 12 | grep -e "$1" || { dmesg | tail -n 12; false; }
}

# upload_image NAME: leaves the error in $error
upload_image()
{
	echo 1 >"$upload/loading"
	cat "$folder/$1.fw" >"$upload/data"
	echo 0 >"$upload/loading"
	while [ "$(cat "$upload/status")" != idle ]; do
		sleep 0.1
	done
	error=$(cat "$upload/error")
}

taken()
{
	upload_image "$1"
	[ -z "$error" ] || { echo "$error, $(cat "$function/firmware_refused")"; false; }
}

# alive COMMAND...: while a program holds a context with tables on the device, which outlives that
alive()
{
	before=$(cat "$function/resets/sequence")
	mkfifo "$folder/hold"
	"$build/tests/vm/vm-held_context" <"$folder/hold" >"$folder/held" &
	holder=$!
	exec 8>"$folder/hold"
	until grep -q '^held' "$folder/held"; do
		kill -0 $holder || break
		sleep 0.1
	done
	"$@"
	set -- $?
	exec 8>&-
	wait $holder || set -- 1
	rm "$folder/hold"
	[ "$1" -eq 0 ] && is resets/sequence "$before"
}

# refused NAME ERROR: at once, before anything is reset
refused()
{
	upload_image "$1"
	[ "$error" = preparing:firmware-invalid ] || { echo "$error"; return 1; }
	grep "^error $2, " "$function/firmware_refused" || { cat "$function/firmware_refused"; false; }
}

# flip NAME BYTE: of newer.fw
flip()
{
	cp "$folder/newer.fw" "$folder/$1.fw"
	byte=$(od -An -tu1 -j "$2" -N 1 "$folder/newer.fw")
	printf '%b' "\\0$(printf %o $((byte ^ 4)))" |
		dd of="$folder/$1.fw" bs=1 seek="$2" conv=notrunc status=none
}

# no_flip: in no part of a signed image may a bit change: header, table, sections, zeros between them,
# and what is behind the image. Texts for people in a signature's head may, within their limits.
no_flip()
{
	end=$(stat -c %s "$folder/plain.fw")
	for byte in 0 4 8 12 16 24 32 36 40 127 128 136 160 192 256 320 350 384 5000 $((end / 2)) \
		$((end - 65)) $((end - 1)) "$end" $((end + 4)) $((end + 9)) $((end + 17)) $((end + 63)) \
		$((end + 64)) $((end + 66)) $((end + 150)) $((end + 250)) $((end + 320)); do
		flip flipped "$byte"
		upload_image flipped
		[ "$error" = preparing:firmware-invalid ] || { echo "byte $byte: $error"; return 1; }
	done
}

enrol()
{
	keyctl padd asymmetric '' "%keyring:$1" <"$folder/$2.der"
}

stays_enrolled()
{
	ring=$(keyctl show '%keyring:.embeng' | awk 'NR == 2 { print $1 }')
	key=$(keyctl list '%keyring:.embeng' | awk 'NR == 2 { sub(":", ""); print $1 }')
	echo "$key in $ring"
	! keyctl unlink "$key" "$ring" && ! keyctl revoke "$key" && ! keyctl clear "$ring" &&
		keyctl list '%keyring:.embeng' | grep one
}

# Both modules anew: the emulator's devices forget all that they ran.
reload()
{
	# shellcheck disable=SC2086
	rmmod embeng && rmmod embeng_emu && insmod "$modules/emulator/embeng_emu.ko" $place &&
		insmod "$modules/embeng.ko" "$@"
}

binds_not()
{
	! bind && [ ! -e "$function/accel" ]
}

shows()
{
	"$embeng" fw show -d "pci:$address" >"$folder/shown"
	cat "$folder/shown"
	grep -q "$1" "$folder/shown"
}

is_checked()
{
	"$embeng" info -d "pci:$address" >"$folder/info" && cat "$folder/info" &&
		grep '^capabilities ' "$folder/info" && ! grep 'signature unchecked' "$folder/info"
}

# Nobody is sent to load a driver that is loaded.
listed()
{
	"$embeng" list >"$folder/listed"
	cat "$folder/listed"
	! grep modprobe "$folder/listed" && grep 'the image is not signed, and a signature is required' "$folder/listed"
}

quiet()
{
	! dmesg | grep -E 'BUG|WARNING|Oops|Call Trace|embeng.*(refuses to|unmapped)'
}

check 'keys and images are made' make_all
one=$(cat "$folder/one.id") two=$(cat "$folder/two.id")

# -- nobody has keys --

check 'the shipped image is unsigned' is firmware_signature unsigned
check 'and says where it is from' is firmware_image embeng/embeng.fw
check 'and the log says it' logged 'firmware 0.1.0.0 of embeng/embeng.fw runs, unsigned'
check 'so does embeng fw show' shows '^signature     unsigned$'
check 'an unsigned image of the highest version is taken' taken evil
check 'it runs' is firmware_version $highest
check 'but raises no limit' is firmware_minimum 0.0.0.0
check 'so that the shipped one is taken again' taken plain
check 'and boots when the driver is bound anew' rebind
check 'a signed image is taken' taken newer
check 'nobody has checked who signed it' is firmware_signature "unchecked $one"
check 'so it raises no limit either' is firmware_minimum 0.0.0.0
check 'the shipped one is back' taken plain
cp "$folder/plain.fw" "$folder/cut.fw"
truncate -s -1 "$folder/cut.fw"
check 'a piece of an image costs nobody a context' alive refused cut 2

# -- the recovery image --

rm "$image"
install_image plain "$recovery"
check 'without the image the other is booted' rebind
check 'which is told' is firmware_image embeng/recovery.fw
check 'it takes another' taken newer
check 'which is told, too' is firmware_image upload
install_image cut "$image"
check 'a corrupt image' rebind
check 'is refused' grep '^error 2, ' "$function/firmware_refused"
check 'and the other booted' is firmware_image embeng/recovery.fw
install_image plain "$image"
echo 1 >"$faults/firmware_refuses/count"
echo 11 >"$faults/firmware_refuses/value"
check 'what the device refuses' rebind
check 'is not booted, but the other' is firmware_image embeng/recovery.fw
check 'and the log says so' logged 'recovery.fw is booted, since embeng/embeng.fw cannot be'
check 'a reset' sh -c "echo 1 >'$function/reset'"
check 'tries the image again' is firmware_image embeng/embeng.fw
rm "$recovery"

# -- a key is enrolled --

check 'root enrols a key' enrol .embeng one
check 'which stays' stays_enrolled
check 'an unsigned image is refused, and costs nobody a context' alive refused plain 17
check 'and the log says what to do' logged 'upload needs a signature by an enrolled key: embeng fw sign'
check 'nor is the highest version taken' alive refused evil 17
check 'nor what another key signed' alive refused other 18
check 'and the log says whose' logged "upload says that key '$two' signed it"
cp "$folder/plain.fw" "$folder/moved.fw"
plain=$(stat -c %s "$folder/plain.fw")
tail -c +$((plain + 1)) "$folder/newer.fw" >>"$folder/moved.fw"
check 'nor with the signature of another image' alive refused moved 19
check 'nor with any bit changed' alive no_flip
check 'what the key signed is taken' taken newer
check 'and is signed' is firmware_signature "signed $one"
check 'as its capabilities say' is_checked
check 'which embeng fw show says' shows "^signature     signed $one\$"
check 'the limit is that of the image that is installed' is firmware_minimum 0.1.0.0
install_image plain "$image"
check 'the installed image must be signed as well' unbind
check 'and does not boot else' binds_not
check 'of which list says why' listed
check 'which the log says' logged 'embeng/embeng.fw needs a signature by an enrolled key'
install_image kept "$recovery"
check 'a signed recovery image boots' bind
check 'it is that' is firmware_image embeng/recovery.fw
check 'and is signed' is firmware_signature "signed $one"
check 'what would shut out all others is taken' taken top
check 'but the limit stays where the recovery image boots' is firmware_minimum 0.2.0.0
check 'an older one is refused now' alive refused older 6
check 'and the log says which are not' logged 'the lowest version that the device boots is 0.2.0.0'
check 'the recovery image boots' rebind
check 'as ever' is firmware_image embeng/recovery.fw
install_image newer "$image"
check 'and with a signed image beside it' rebind
check 'that one' is firmware_image embeng/embeng.fw
check 'an unsigned recovery image' install_image plain "$recovery"
check 'is none' rebind
check 'and the log says so' logged 'embeng/recovery.fw needs a signature'
rm "$recovery"

# -- keys of the kernel's own, and of the device's --

install_image kept "$image"
check 'with system_keys' reload system_keys=1
check 'what no key of the kernel signed is not booted' [ ! -e "$function/accel" ]
check 'and the log says so' logged "embeng/embeng.fw says that key '$one' signed it"
check 'all of it anew' reload
check 'a device' enrol .embeng_emu one
check 'that has a key boots what it signed' rebind
check 'and says that it has checked it' is_checked
check 'the driver, without keys, has not' is firmware_signature "unchecked $one"
check 'what another key signed' upload_image other
check 'the device refuses by itself' grep '^error 18, ' "$function/firmware_refused"
check 'and boots what it ran before' is firmware_image embeng/embeng.fw
install_image plain "$image"
check 'the driver is unbound' unbind
check 'an unsigned image does not boot there' binds_not
check 'and the log says so' logged 'refused by the device: error 17'
check 'no complaint in the log' quiet
finish
