#!/bin/sh
# SPDX-License-Identifier: MIT
# embeng report: what the archive of a recorded tree holds, in which personal things were planted, and
# that none of these is in it. Speaks TAP.
# usage: report.sh EMBENG-COMMAND
set -u

. "$(dirname "$0")/checks.sh"
case $embeng in /*) ;; *) embeng=$PWD/$embeng ;; esac
cd "$folder" || exit 1
root=$folder/root
address=0000:03:00.0
function=$root/sys/devices/$address

# put PATH TEXT: a file of the recorded tree
put()
{
	mkdir -p "$root/$(dirname "$1")"
	printf '%s\n' "$2" >"$root/$1"
}

# has MEMBER NAME PATTERN: a file of the archive has a line like it
has()
{
	tar -xf report.tar -O "embeng-report/$1" >out 2>err
	says out "$2" "$3"
}

# never NAME PATTERN: nothing in the archive is like it
never()
{
	grep -rniE -e "$2" unpacked >out && report no "$1" || report ok "$1"
}

# -- the tree, with a name of a machine, people, serial numbers, and words of others --

mkdir -p "$function/accel/accel0" "$root/sys/bus/pci/devices" "$root/sys/bus/pci/drivers/embeng"
ln -s "../../../devices/$address" "$root/sys/bus/pci/devices/$address"
ln -s ../../bus/pci/drivers/embeng "$function/driver"
put "sys/devices/$address/vendor" 0x0eb0
put "sys/devices/$address/device" 0x0001
put "sys/devices/$address/current_link_width" 8
put "sys/devices/$address/firmware_version" 0.1.0.0
put "sys/devices/$address/interface_version" 0.1
put "sys/devices/$address/resets/queues" 1
put "sys/devices/$address/counters/commands" 1234
put "sys/devices/$address/aer_dev_fatal" 'Undefined 0
TLP 3'
put sys/module/embeng/version 0.1.0
put sys/module/embeng/parameters/hang_ms 10000
put sys/module/embeng/parameters/system_keys N
put proc/sys/kernel/osrelease 6.12.117
put proc/sys/kernel/hostname wopr17.example.org
put etc/hostname wopr17
put etc/os-release 'PRETTY_NAME="Debian of wopr17"
ID=debian
VERSION_ID="12"'
put etc/passwd 'root:x:0:0:root:/root:/bin/sh
dlightman:x:1000:1000:David Lightman,,,:/home/david83:/bin/bash'
put etc/modprobe.d/embeng.conf '# written by dlightman for wopr17
options embeng hang_ms=10000
options embengine x=1
blacklist embeng_emu
options snd card=SN4711'
put proc/cmdline 'BOOT_IMAGE=/vmlinuz root=UUID=0a1b2c3d-1111-2222-3333-444455556666 embeng.hang_ms=5000 iommu=pt user=dlightman'
put proc/self/limits 'Max locked memory         8388608              8388608              bytes'
put proc/meminfo 'MemTotal:        16000000 kB'
put dev/kmsg "6,1,100,-;embeng $address: [drm] queue 7 of context 4 of my secret tool[4711]: standstill, it is reset
6,2,200,-;embeng $address: [drm] ring at ffff888012345678 of wopr17, MAC 52:54:00:12:34:56
6,3,300,-;usb 1-1: SerialNumber: FOREIGN99
6,4,400,-;audit: user dlightman ran embeng on wopr17
6,5,500,-;pci $address: BAR 2: assigned
6,7,550,-;pcieport 0000:00:1c.0: AER: Correctable error message received from $address
6,6,600,-;embeng_emu: a device of /home/david83/boards, Serial Number: SN-0815-X"
debug=sys/kernel/debug/accel/$address
put "$debug/registers" '000 MAGIC                0x474e424d
080 BOOT_STATE           0x3
0ac STATUS               0x1
120 ADMIN_RING           0x7fedcba98000'
put "$debug/events" '1 77 POWER_ON detail 0 value 0'
put "$debug/contexts" 'context 4 program my secret tool[4711] regions 1 memory 4096 of 8192 events 0'
put sys/kernel/tracing/trace '# tracer: nop
     my secret tool-4711    [001] d..1.    12.000100: embeng_submit: context=4 queue=7 index=0 count=2
     bash-99       [001] d..1.    12.000110: sched_switch: prev_comm=foreigntask
     my secret tool-4711    [001] d..1.    12.000120: embeng_submit: context=4 queue=7 index=1 count=1'
put sys/class/devcoredump/devcd1/data 'embeng devcoredump 1
device 0000:03:00.0
cause standstill
still_ns 1204000000
time_ns 88000000000
firmware 0x100000000
resets 0 queues 0 engines 0 functions 0
register MAGIC 0x474e424d
register ADMIN_RING 0x7fedcba98000
context 4 program my secret tool[4711] regions 3 events 2
  model hash 0xabc records 3
  table 0 rows 100 dim 8 optimizer 1
  name of 2 index 0 "items"
  queue 7 kind 4 replica 0 priority 1 validated entries 16 32
    sq_tail 1 sq_head 1 done 0 cq_head 0 cq_tail 0 sent 0 heartbeat 9
    report 2 state 0 wait 0 replica 0 step 0 tail 1 cq_head 0
    command 0 opcode 10 flags 0x0 cookie 0x3 step 0 after 0 key 2:1 offset 96 length 1136 arg 0x0 at fault'
put sys/class/devcoredump/devcd2/data 'dump of a foreign driver'

# -- the archive --

"$embeng" report --root "$root" -o report.tar --json >out 2>err
[ $? -eq 0 ] && report ok 'report' || report no 'report'
cp out document
document 'as a document' '(d["schema"] == "embeng.report/1" and d["archive"] == "report.tar" and
	{f["name"] for f in d["files"]} >= {"versions.json", "configuration.txt", "kernel-log.txt",
	"trace.txt", "trace.decoded.txt", "dumps/devcd1.txt", "dumps/devcd1.decoded.txt"} and
	len(d["left_out"]) >= 8)'
mkdir unpacked
tar -xf report.tar -C unpacked 2>err && report ok 'any tar reads it' || report no 'any tar reads it'
cp document out
document 'the sizes are those of the files' 'all(
	__import__("os").path.getsize("unpacked/embeng-report/" + f["name"]) == f["bytes"] for f in d["files"])'

has README 'the index names a file and what it is' '^  dumps/devcd1\.decoded\.txt  *[0-9]* bytes  the same in words'
has README 'and what is left out' 'serial numbers: (serial)'
has doctor.json 'what doctor finds' '"schema": "embeng.doctor/1"'
has versions.json 'the kernel' '"kernel": "6\.12\.117"'
has versions.json 'the firmware' '"firmware": "0\.1\.0\.0"'
has versions.json 'the distribution' '"version": "12"'
has versions.json 'the driver' '"version": "0\.1\.0"'
has "device-$address/attributes.txt" 'a counter' '^counters/commands  *1234$'
has "device-$address/attributes.txt" 'a reset' '^resets/queues  *1$'
has "device-$address/attributes.txt" 'the driver of the function' '^driver  *embeng$'
has "device-$address/registers.decoded.txt" 'a register in words' '^  BOOT_STATE  *0x3  enum embeng_boot_state'
has "device-$address/registers.decoded.txt" 'what is odd of one' 'line 3, registers: STATUS is 1'
has "device-$address/events.txt" 'the event log' '^1 77 POWER_ON'
has kernel-log.txt 'a message of the driver' 'queue 7 of context 4 of (program): standstill, it is reset'
has kernel-log.txt 'a message about the device' 'BAR 2: assigned'
has kernel-log.txt 'a message of the port' 'pcieport 0000:00:1c\.0: AER: Correctable'
has trace.decoded.txt 'an event, and what is odd' 'the submitted index goes back, from 2 to 1'
has dumps/devcd1.decoded.txt 'the verdict of a dump' 'is at fault: STATS of table 0 (items)\.'
has configuration.txt 'a parameter' '^hang_ms = 10000$'
has configuration.txt 'a line of modprobe.d' 'options embeng hang_ms=10000$'
has configuration.txt 'a word of the command line' '^embeng\.hang_ms=5000$'
has configuration.txt 'another one about memory' '^iommu=pt$'
has configuration.txt 'a limit' '^Max locked memory '

# -- nothing personal --

never 'the name of the machine' 'wopr17'
never 'its domain' 'example\.org'
never 'the name of an account' 'dlightman'
never 'the name of a person' 'David|Lightman'
never 'a home folder' 'david83'
never 'a program' 'secret tool|4711'
never 'a serial number' 'SN-0815|FOREIGN99'
never 'an address of a network' '52:54:00'
never 'an address of the kernel' 'ffff888012345678'
never 'an address that the device was given' '7fedcba98000'
never 'a UUID' '0a1b2c3d'
never 'words of other drivers' 'SerialNumber|audit|foreigntask|snd card|embengine'
never 'a dump of another driver' 'foreign driver'
grep -c '(host)' unpacked/embeng-report/kernel-log.txt >out
says out 'a word stands where it was' '^1$'

# -- what cannot be read --

rm -r "$root/sys/kernel/debug" "$root/sys/class/devcoredump"
"$embeng" report --root "$root" -o report.tar >out 2>err
has README 'a file that is not there is listed with the reason' \
	"^  device-$address/registers\.txt  */sys/kernel/debug/.*: No such file or directory"
has README 'no dump is no failure' '^  dumps/  *there is no dump; [^:]*$'
mkdir "$root/sys/module/embeng/parameters/broken"
expect 'a parameter that cannot be read' 1 report --root "$root" -o report.tar
says err 'is named' '/sys/module/embeng/parameters/broken could not be read: '
has README 'in the archive, too' '/sys/module/embeng/parameters/broken .*could not be read$'
has configuration.txt 'what could be read is there all the same' '^hang_ms = 10000$'

# -- whole or not at all --

expect 'nowhere to write' 2 report --root "$root" -o nowhere/report.tar
[ ! -e nowhere ] && report ok 'nothing is written' || report no 'nothing is written'
expect 'a full disk' 5 report --root "$root" -o /dev/full --json
document 'as a document' 'd["schema"] == "embeng.report/1" and d["error"]["code"] == 5'
mkdir empty-root
"$embeng" report --root empty-root -o - >out 2>err
tar -tf out >list && grep -q '^embeng-report/README$' list && report ok 'on standard output' ||
	report no 'on standard output'
for end in gz tgz xz zst zip; do
	expect "a name of a compressed file, .$end" 2 report -o "packed.$end"
	says err 'says that the archive is none' "packed\.$end: the archive is a tar file, which is not compressed; its name cannot end in \.$end"
	[ ! -e "packed.$end" ] && report ok 'and nothing is written' || report no 'and nothing is written'
done
expect 'both on standard output' 2 report -o - --json
expect 'no such tree' 2 report --root nowhere -o report2.tar
[ ! -e report2.tar ] && report ok 'makes no archive' || report no 'makes no archive'
expect 'an argument too many' 2 report file

# -- this machine --

"$embeng" report -o live.tar --json >out 2>err
code=$?
[ $code -le 1 ] && report ok 'of this machine' || report no 'of this machine'
document 'with the devices' '(any(f["name"] == "list.json" for f in d["files"]) and
	all(m["reason"] for m in d["missing"]))'
tar -xf live.tar -O embeng-report/list.json >out
document 'which are the ones of embeng list' 'd["schema"] == "embeng.list/1" and len(d["devices"]) >= 1'

finish
