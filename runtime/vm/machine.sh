# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Boots a kernel in QEMU with emulated devices behind the driver and runs a command there. It is one
# file because `embeng vm` and tests/vm/run are the same machine, with modules from different places.
# Sourced, after build.sh, by a script that sets
#	machine_name	what messages begin with
#	machine_init	the file init of this folder
# and defines
#	machine_usage	prints how the script is called
#	machine_prepare	builds what the machine needs, calls machine_may_start, and sets
#			machine_path (folders that come first on PATH), machine_firmware and
#			machine_modules (files in the order in which they load); and, where
#			libembeng.so is in no folder of the system's, machine_libraries
# It calls machine_parse, then machine_run.

# The number of devices that one machine has memory for.
machine_most_devices=16

# The bytes that the recording of each device may have; EMBENG_EMU can say it otherwise.
machine_recording=256M

# machine_fail STATUS MESSAGE...: ends the script
machine_fail()
{
	status=$1
	shift
	echo "$machine_name: $*" >&2
	exit "$status"
}

# machine_number OPTION TEXT LEAST MOST: fails unless the text is such a number
machine_number()
{
	case $2 in
	'' | *[!0-9]* | ????????*) ;;
	*) [ "$2" -lt "$3" ] || [ "$2" -gt "$4" ] || return 0 ;;
	esac
	machine_fail 2 "$1 takes a number from $3 to $4, not '$2'"
}

# Sets the options, and machine_words to how many arguments they are, with the "--".
machine_parse()
{
	kernel=stock cmdline='' share='' timeout=300 memory='' qemu='' log='' carry='' cpu=''
	cpus=2 devices='' accel=tcg record=''
	machine_words=1
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		[ $# -ge 2 ] || { machine_usage >&2; exit 2; }
		case $1 in
		--kernel) kernel=$2 ;;
		--cmdline) cmdline=$2 ;;
		--share)
			share=$(cd "$2" 2>/dev/null && pwd -P) ||
				machine_fail 2 "--share: '$2' is no folder that can be entered"
			;;
		--timeout) timeout=$2 ;;
		--memory) memory=$2 ;;
		--cpu) cpu=$2 ;;
		--cpus) cpus=$2 ;;
		--devices) devices=$2 ;;
		--accel) accel=$2 ;;
		--qemu) qemu=$2 ;;
		--log) log=$2 ;;
		--record) record=$2 ;;
		--carry) carry=$2 ;;
		*) machine_usage >&2; exit 2 ;;
		esac
		shift 2
		machine_words=$((machine_words + 2))
	done
	[ $# -ge 2 ] || { machine_usage >&2; exit 2; }
	machine_number --timeout "$timeout" 1 9999999
	machine_number --cpus "$cpus" 1 64
	case $accel in
	kvm | tcg) ;;
	*) machine_fail 2 "--accel takes kvm or tcg, not '$accel'" ;;
	esac
	[ -z "$devices" ] || machine_number --devices "$devices" 1 $machine_most_devices
	if [ -n "$share" ] && [ -n "$carry" ]; then
		machine_fail 2 "--carry keeps nothing of the host, so there is no --share"
	fi
	if [ -n "$record" ] && ! true >"$record"; then
		machine_fail 2 "--record: '$record' cannot be written"
	fi
}

# Names each program that is missing, with the package of Debian that has it.
machine_tools()
{
	[ "$(uname -m)" = x86_64 ] ||
		machine_fail 125 "the machine is an x86-64 one and runs this machine's own programs," \
			"which are those of $(uname -m)"
	programs='' packages=''
	for tool in qemu-system-x86_64=qemu-system-x86 busybox=busybox-static modprobe=kmod cpio=cpio \
		xz=xz-utils flock=util-linux make=make gcc=gcc; do
		command -v "${tool%=*}" >/dev/null || {
			programs="$programs ${tool%=*}"
			packages="$packages ${tool#*=}"
		}
	done
	[ -z "$programs" ] || machine_fail 125 "these programs are missing:$programs; on Debian
  apt-get install --no-install-recommends$packages
installs them"
}

# Returns when it is gone, so that nothing is left of a machine whose script has ended.
machine_end()
{
	[ -z "$machine" ] || ! kill "$machine" 2>/dev/null || wait "$machine" || :
}

# Makes the scratch folder and holds the lock: machines that start together fetch a kernel and build
# programs once.
machine_begin()
{
	scratch='' machine='' machine_libraries=${machine_libraries-}
	# A terminal and timeout(1) signal more than once, and what runs here then, too.
	trap 'trap "" INT TERM; machine_end; rm -rf "$scratch"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	scratch=$(mktemp -d "${TMPDIR:-/tmp}/embeng-vm.XXXXXX")
	exec 9<"$0"
	flock 9
}

machine_may_start()
{
	exec 9<&-
}

# machine_built COMMAND...: shows what it says if it fails, and ends the script
machine_built()
{
	"$@" >"$scratch/build" 2>&1 || {
		tail -n 60 "$scratch/build" >&2
		machine_fail 125 "the build failed"
	}
}

# machine_kvm_runs CPU: QEMU makes such a processor by KVM, which it does not begin to run
machine_kvm_runs()
{
	[ -r /dev/kvm ] && [ -w /dev/kvm ] && echo quit | timeout 20 qemu-system-x86_64 \
		-machine q35,accel=kvm -cpu "$1" -m 64M -nodefaults -no-user-config -display none -S \
		-monitor stdio >"$scratch/kvm" 2>&1
}

# Sets $cpu. A host that is virtual itself may refuse what its processor seems to have, most often
# the register in which a processor says which attacks it withstands. Some begin to run a kernel and
# fail, so that KVM is never taken unasked.
machine_processor()
{
	if [ "$accel" = tcg ]; then
		cpu=${cpu:-max}
		return
	fi
	for way in ${cpu:-max max,-arch-capabilities}; do
		if machine_kvm_runs "$way"; then
			cpu=$way
			return
		fi
	done
	machine_fail 125 "KVM does not work here, --accel tcg does:" \
		"$(cat "$scratch/kvm" 2>/dev/null || echo "this user may not open /dev/kvm")"
}

# Unpacks a module of any compression.
machine_module()
{
	case $1 in
	*.xz) xz -dc "$1" ;;
	*.zst) zstd -dcq "$1" ;;
	*.gz) gzip -dc "$1" ;;
	*) cat "$1" ;;
	esac
}

# Modules that reach the shared folders, in the order in which they load.
machine_initramfs()
{
	root=$scratch/initramfs
	mkdir -p "$root/bin" "$root/modules" "$root/proc" "$root/sys" "$root/dev"
	cp "$(command -v busybox)" "$root/bin/busybox"
	for applet in $("$root/bin/busybox" --list); do
		[ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
	done
	cp "$machine_init" "$root/init"
	for module in virtio_pci virtio_console 9pnet_virtio 9p overlay; do
		modprobe -d "$kernel_modules" -S "$kernel_release" --show-depends "$module" |
			sed -n 's/^insmod \([^ ]*\).*/\1/p'
	done | awk '!seen[$0]++' | while read -r file; do
		name=$(basename "$file" | sed 's/\.ko\..*/.ko/')
		machine_module "$file" >"$root/modules/$name"
		echo "$name"
	done >"$root/modules/order"
	(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$scratch/initrd"
}

# Files with the libraries that they load, one a line, named from the root on.
machine_with_libraries()
{
	for file; do
		echo "$file"
		ldd "$file" 2>/dev/null | grep -o '/[^ ]*' || :
	done | xargs -r realpath -ms | sed 's|^/||' | sort -u
}

# machine_control COMMAND...: the folder that the machine reads what it has to do from
machine_control()
{
	control=$scratch/control
	mkdir "$control"
	# shellcheck disable=SC2086
	[ -z "$carry" ] || machine_with_libraries $carry $machine_modules \
		/lib/firmware/embeng/embeng.fw >"$control/carry"
	echo "share=$(quoted "$share") record=$(quoted "$record")" >"$control/settings"
	setting="export ${machine_libraries:+LD_LIBRARY_PATH=$(quoted "$machine_libraries")}HOME=/root TMPDIR=/tmp PATH=$(quoted "$machine_path:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")"
	# The command writes to the console of the machine, which is a terminal whoever reads it here.
	terminal=dumb
	[ ! -t 1 ] || terminal=${TERM-dumb}
	setting="$setting TERM=$(quoted "$terminal")"
	{
		echo "$setting"
		[ -z "$machine_modules" ] || machine_load
	} >"$control/load"
	{
		echo "$setting"
		[ -n "$carry" ] || echo "cd $(quoted "$PWD")"
		quoted "$@"
		echo
	} >"$control/command"
}

# The first command that fails is what the machine is in trouble with.
machine_load()
{
	[ -z "$devices" ] || EMBENG_EMU="${EMBENG_EMU-} devices=$devices"
	[ -z "$record" ] || EMBENG_EMU="record=$machine_recording ${EMBENG_EMU-}"
	echo "set -e"
	# shellcheck disable=SC2086
	build_load_from "$machine_firmware" $machine_modules
}

# machine_folder TAG PATH [readonly]: a comma is written twice there
machine_folder()
{
	echo "local,path=$(printf %s "$2" | sed 's/,/,,/g'),mount_tag=$1,security_model=none,multidevs=remap${3:+,readonly=on}"
}

# Starts QEMU and waits for its end, with what the command prints on stdout; sets $status.
#
# The device drops what it is not rid of at once: it writes to a file, whoever reads and how fast.
# The kernel patches its own code while it boots. QEMU before 8.1 may translate, for the other
# processor, a page that is being patched and keep the breakpoint in it ("Oops: int3", once in
# thousands of boots): that processor is off until init has all it needs. A stall of the host makes
# the kernel distrust the TSC and patch itself once more, later; it is told to trust it.
machine_boot()
{
	set --
	[ -z "$share" ] || set -- -virtfs "$(machine_folder share "$share")"
	: >"$scratch/out"
	status=0
	# shellcheck disable=SC2086
	timeout --foreground "$timeout" qemu-system-x86_64 \
		-machine "q35,accel=$accel" -cpu "$cpu" -smp "$cpus" -m "$memory" -nodefaults -no-user-config \
		-display none -no-reboot \
		-kernel "$kernel_image" -initrd "$scratch/initrd" \
		-append "console=ttyS0 quiet panic=-1 oops=panic no_timer_check tsc=reliable maxcpus=1 $kernel_cmdline $cmdline" \
		-serial "file:$scratch/console" \
		-device virtio-serial-pci -chardev "file,id=out,path=$scratch/out" \
		-device virtconsole,chardev=out \
		-object memory-backend-ram,id=bars,size=16M -device ivshmem-plain,memdev=bars \
		-virtfs "$(machine_folder host / readonly)" -virtfs "$(machine_folder control "$control")" \
		-virtfs "$(machine_folder modules "$kernel_modules/lib/modules" readonly)" "$@" $qemu \
		</dev/null &
	machine=$!
	tail -c +1 -s 0.2 -f --pid=$machine "$scratch/out" &
	reader=$!
	wait $machine || status=$?
	machine=
	wait $reader || :
}

# Puts the recording of each device where --record says: that of device 1 gets the number 2, and so on.
machine_keep_recordings()
{
	for recording in "$control"/recording-*; do
		[ -e "$recording" ] || continue
		device=${recording##*-}
		[ "$device" = 0 ] || device=$((device + 1))
		cp "$recording" "$record$([ "$device" = 0 ] || echo ".$device")" || :
	done
	[ -s "$record" ] || echo "$machine_name: the machine ended without a recording" >&2
}

# Exits with the status of the command, or says why there is none.
machine_judge()
{
	if [ "$status" = 124 ]; then
		echo "$machine_name: still running after $timeout s; the kernel's last words:" >&2
		tail -n 40 "$scratch/console" >&2
		exit 124
	fi
	[ ! -s "$control/trouble" ] || machine_fail 125 "$(cat "$control/trouble")"
	if [ ! -s "$control/status" ]; then
		echo "$machine_name: the machine stopped before the command ended:" >&2
		tail -n 60 "$scratch/console" >&2
		exit 125
	fi
	exit "$(cat "$control/status")"
}

# machine_run COMMAND...: builds, boots, runs the command there and exits with its status
machine_run()
{
	machine_tools
	machine_begin
	kernel_named "$kernel" || exit 125
	machine_prepare
	memory=${memory:-1G}
	machine_processor
	: >"$scratch/console" # also for a machine that does not start
	machine_initramfs
	machine_control "$@"
	machine_boot
	if [ -n "$log" ]; then
		cat "$scratch/console" "$control/dmesg" >"$log" 2>/dev/null || :
	fi
	[ -z "$record" ] || machine_keep_recordings
	machine_judge
}
