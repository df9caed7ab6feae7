# SPDX-License-Identifier: MIT
"""The machines on which doctor_trees.py runs embeng doctor: BASE, which has no fault, and CASES, each
of which changes some of its files and says what must be found then. It is apart from the program that
makes the trees, since it has no more than data.
"""
import os
import re
import struct


RELEASE = "6.12.9-amd64"
ADDRESS = "0000:01:00.0"
PCI = f"/sys/bus/pci/devices/{ADDRESS}"
DRIVER = "/sys/bus/pci/drivers/embeng"
MODULES = f"/lib/modules/{RELEASE}"
DKMS = "/var/lib/dkms/embeng/0.1.0"
NODE = "/dev/accel/accel0"
IMAGE = "/lib/firmware/embeng/embeng.fw"
RECOVERY = "/lib/firmware/embeng/recovery.fw"
SIGNATURE = "~Module signature appended~\n"
WIDE = 0x140204  # a memory BAR of 64 bits
GIB = 1 << 30


class Link(str):
    """A symbolic link with this target."""


class Folder:
    """An empty folder."""


def bar(start, size, flags=WIDE):
    return f"0x{start:016x} 0x{start + size - 1 if size else 0:016x} 0x{flags:016x}\n"


def bars(registers=256 * GIB, doorbells=257 * GIB, msix=258 * GIB, size=1 << 22):
    none = bar(0, 0, 0)
    return (bar(registers, 4096) + none + bar(doorbells, size) + none + bar(msix, 4096) + none)


def counters(name, total):
    return f"BadTLP 0\nBadDLLP {total}\nTOTAL_ERR_{name} {total}\n"


def read_magic():
    """The number that images begin with, from the header of the interface."""
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(os.path.join(top, "uapi", "embeng_firmware.h"), encoding="utf-8") as header:
        found = re.search(r"#define EMBENG_FW_MAGIC (0x[0-9a-f]+)u", header.read())
    return int(found.group(1), 16)


MAGIC = read_magic()


def image(version):
    """The head of a firmware image, with a version of four numbers."""
    number = 0
    for part in version:
        number = number << 16 | part
    return struct.pack("<IIIIQQII", MAGIC, 1, 0, 1, number, 4096, 1, 64).ljust(128, b"\0")


def status(uid=1000, rights=0, processors="ff"):
    return (f"Name:\tembeng\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nVmSize:\t 100000 kB\n"
            f"RssAnon:\t 10000 kB\nCapEff:\t{rights:016x}\nCpus_allowed:\t{processors}\n")


def limits(locked):
    return ("Limit                     Soft Limit           Hard Limit           Units\n"
            "Max data size             unlimited            unlimited            bytes\n"
            f"Max locked memory         {locked:<20} {locked:<20} bytes\n"
            "Max address space         unlimited            unlimited            bytes\n")


MOUNTS = ("20 1 0:5 / /dev rw,nosuid - devtmpfs udev rw\n"
          "21 1 0:20 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
CONTAINER = {"/proc/self/mountinfo": MOUNTS.replace("devtmpfs", "tmpfs")}
GROUP = "/sys/fs/cgroup/app"

BASE = {
    "/proc/sys/kernel/osrelease": RELEASE + "\n",
    "/proc/sys/kernel/tainted": "12288\n",
    "/proc/cmdline": "BOOT_IMAGE=/boot/vmlinuz quiet\n",
    "/proc/meminfo": "MemTotal:       16000000 kB\nMemAvailable:   12000000 kB\n"
                     "SwapTotal:             0 kB\n",
    "/proc/self/status": status(),
    "/proc/self/limits": limits("unlimited"),
    "/proc/self/cgroup": "0::/app\n",
    "/proc/self/mountinfo": MOUNTS,
    GROUP + "/memory.max": "max\n",
    GROUP + "/cpu.max": "max 100000\n",
    "/etc/group": "root:x:0:\nrender:x:106:\n",
    "/etc/modprobe.d/nouveau.conf": "# blacklist embeng\nblacklist nouveau\n",
    "/boot/config-" + RELEASE: "# Linux\nCONFIG_DRM=m\nCONFIG_DRM_ACCEL=y\n",
    MODULES + "/modules.dep": "kernel/drivers/gpu/drm/drm.ko.xz:\nupdates/dkms/embeng.ko: "
                              "kernel/drivers/gpu/drm/drm.ko.xz\nupdates/dkms/embeng_emu.ko:\n",
    MODULES + "/updates/dkms/embeng.ko": "a module" + SIGNATURE,
    MODULES + "/build": Folder,
    IMAGE: image((0, 2, 0, 0)),
    RECOVERY: image((0, 1, 0, 0)),
    "/sys/kernel/security/lockdown": "[none] integrity confidentiality\n",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "/sys/kernel/iommu_groups/7/type": "DMA-FQ\n",
    f"/sys/kernel/iommu_groups/7/devices/{ADDRESS}": Folder,
    "/sys/module/module/parameters/sig_enforce": "N\n",
    "/sys/module/embeng/initstate": "live\n",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "schedutil\n",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "acpi-cpufreq\n",
    "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave\n",
    "/sys/devices/system/cpu/cpu1/cpufreq/scaling_driver": "intel_pstate\n",
    "/sys/devices/system/cpu/cpufreq": Folder,
    "/sys/bus/pci/devices/0000:00:02.0/vendor": "0x8086\n",
    DRIVER + "/refusals": "",
    PCI + "/vendor": "0x0eb0\n",
    PCI + "/device": "0x0001\n",
    PCI + "/config": b"\xb0\x0e\x01\x00\x06\x00",
    PCI + "/resource": bars(),
    PCI + "/power_state": "D0\n",
    PCI + "/power/runtime_status": "active\n",
    PCI + "/current_link_speed": "16.0 GT/s PCIe\n",
    PCI + "/max_link_speed": "16.0 GT/s PCIe\n",
    PCI + "/current_link_width": "16\n",
    PCI + "/max_link_width": "16\n",
    PCI + "/dma_mask_bits": "64\n",
    PCI + "/driver_override": "(null)\n",
    PCI + "/aer_dev_correctable": counters("COR", 0),
    PCI + "/aer_dev_nonfatal": counters("NONFATAL", 0),
    PCI + "/aer_dev_fatal": counters("FATAL", 0),
    PCI + "/driver": Link("../../../../bus/pci/drivers/embeng"),
    PCI + "/iommu_group": Link("../../../../kernel/iommu_groups/7"),
    PCI + "/accel/accel0/dev": "261:0\n",
    PCI + "/firmware_version": "0.2.0.0\n",
    PCI + "/firmware_image": "embeng/embeng.fw\n",
    PCI + "/firmware_refused": "none\n",
    PCI + "/firmware_minimum": "0.1.0.0\n",
    PCI + "/readings_age_ms": "0\n",
    PCI + "/resets/wedged": "0\n",
    PCI + "/resets/queues": "0\n",
    PCI + "/resets/contexts": "0\n",
    PCI + "/resets/engines": "0\n",
    PCI + "/resets/functions": "0\n",
    PCI + "/counters/ecc_correctable": "0\n",
    PCI + "/counters/ecc_uncorrectable": "0\n",
    PCI + "/hwmon/hwmon3/temp1_input": "50000\n",
    PCI + "/hwmon/hwmon3/temp1_crit": "100000\n",
    NODE: "node 0660 owner 0 group 106 number 261:0 opens yes\n",
}

# Attributes of the driver, which go with it.
BOUND = [path for path in BASE if path.startswith(PCI + "/") and path[len(PCI) + 1:].split("/")[0] in
         ("driver", "accel", "firmware_version", "firmware_image", "firmware_refused",
          "firmware_minimum", "readings_age_ms", "resets", "counters", "hwmon")] + [NODE]
UNBOUND = {path: None for path in BOUND}
UNLOADED = {**UNBOUND, "/sys/module/embeng/initstate": None, "/sys/module/embeng": None,
            DRIVER + "/refusals": None}
UNBUILT = {**UNLOADED, MODULES + "/modules.dep": "kernel/drivers/gpu/drm/drm.ko.xz:\n",
           MODULES + "/updates/dkms/embeng.ko": None}
ENFORCED = {**UNLOADED, "/sys/module/module/parameters/sig_enforce": "Y\n"}
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


def without(prefix):
    return {path: None for path in BASE if path.startswith(prefix)}


def refused(error, words, number=-74):
    return {**UNBOUND, DRIVER + "/refusals":
            f"0000:09:00.0 device -5: another\n{ADDRESS} firmware {number}: refused: error {error}, "
            f"byte 16: {words}\n"}


def blacklisted(line, **changes):
    return {**UNLOADED, "/etc/modprobe.d/x.conf": line + "\n", **changes}


def booted(words, **changes):
    return {**UNLOADED, "/proc/cmdline": words + "\n", **changes}


def config(path, words):
    """A configuration as long as that of a real kernel, with these words at its end."""
    other = "".join(f"CONFIG_OTHER_{i}=m\n" for i in range(20000))
    return {"/boot/config-" + RELEASE: None, path: f"# Linux\nCONFIG_DRM=m\n{other}{words}\n"}


def moved(old, new):
    return {name: value for path, content in BASE.items() if path.startswith(old)
            for name, value in ((path, None), (new + path[len(old):], content))}


def node(mode="0660", group=106, number="261:0", opens="yes"):
    return {NODE: f"node {mode} owner 0 group {group} number {number} opens {opens}\n"}


# Name, changes of BASE, {check: verdict}, exit status, words that its line must have.
P, W = "problem", "warning"
CASES = [
    ("no fault", {}, {}, 0, ""),
    ("no function on the bus", without("/sys/bus/pci/devices/" + ADDRESS), {"function": W}, 0,
     "the soft device is there"),
    ("no PCI bus", without("/sys/bus/pci"), {"function": W}, 0, "no function of vendor 0eb0"),
    ("an id that the driver does not know", {PCI + "/device": "0x0002\n", **UNBOUND}, {"ids": P}, 6,
     "0eb0:0002"),
    ("an id that the driver was told", {PCI + "/device": "0x0002\n"}, {}, 0, ""),
    ("gone from the bus", {PCI + "/config": b"\xff" * 64}, {"answers": P}, 7, "all ones"),
    ("another answers in its place", {PCI + "/config": b"\x86\x80\x34\x12"}, {"answers": P}, 7,
     "8086:1234"),
    ("nothing but zeros answers", {PCI + "/config": bytes(64)}, {"answers": P}, 7, "0000:0000"),
    ("a BAR without a place", {PCI + "/resource": bars(doorbells=0)}, {"bars": P}, 7, "BAR 2"),
    ("a BAR that was not assigned",
     {PCI + "/resource": bars().replace("0x0000000000140204", "0x0000000020140204", 1)},
     {"bars": P}, 7, "BAR 0"),
    ("a large BAR below 4 GiB",
     {PCI + "/resource": bars(doorbells=3 * GIB, size=256 << 20)}, {"bars-place": W}, 0, "256 MiB"),
    ("a small BAR below 4 GiB", {PCI + "/resource": bars(doorbells=3 * GIB)}, {}, 0, ""),
    ("without power", {PCI + "/power_state": "D3cold\n", PCI + "/config": b"\xff" * 64, **UNBOUND}, {"power": P}, 7, "D3cold"),
    ("asleep", {PCI + "/power_state": "D3hot\n"}, {"power": W}, 0, "D3hot"),
    ("a power state that does not change", {PCI + "/power/runtime_status": "error\n", **UNBOUND},
     {"power": P}, 7, "could not change"),
    ("an old kernel", {**UNLOADED, "/proc/sys/kernel/osrelease": "6.1.0-28-amd64\n"},
     {"kernel": P}, 9, "older than 6.12"),
    ("a kernel without accel",
     {**UNLOADED, "/boot/config-" + RELEASE: "# Linux\nCONFIG_DRM=m\n# CONFIG_DRM_ACCEL is not set\n"},
     {"kernel": P}, 9, "CONFIG_DRM_ACCEL"),
    *((f"a kernel without accel, by {path}",
       {**UNLOADED, **config(path, "# CONFIG_DRM_ACCEL is not set")}, {"kernel": P}, 9,
       "CONFIG_DRM_ACCEL")
      for path in ("/boot/config-" + RELEASE, MODULES + "/config", MODULES + "/build/.config")),
    ("a kernel with accel, by a long file",
     {**UNLOADED, **config(MODULES + "/config", "CONFIG_DRM_ACCEL=y")}, {"driver-loaded": P}, 9, ""),
    ("a newer kernel", {**UNLOADED, "/proc/sys/kernel/osrelease": "7.4.0-amd64\n",
                        "/lib/modules/7.4.0-amd64/modules.dep": ""},
     {"kernel": W, "driver-built": P}, 9, "newer than 7.3"),
    ("no module", UNBUILT, {"driver-built": P}, 9, "no module embeng for Linux " + RELEASE),
    ("a module of another kernel",
     {**UNBUILT, "/lib/modules/6.12.1-amd64/modules.dep": "extra/embeng.ko.zst:\n"},
     {"driver-built": P}, 9, "a module for Linux 6.12.1-amd64"),
    ("DKMS has not built it", {**UNBUILT, DKMS + "/source/dkms.conf": ""}, {"driver-built": P}, 9,
     "DKMS has embeng 0.1.0"),
    ("DKMS has built and not installed it",
     {**UNBUILT, DKMS + "/source/dkms.conf": "", MODULES + "/build": None,
      f"{DKMS}/{RELEASE}/x86_64/module/embeng.ko.xz": "a module"}, {"driver-built": P}, 9,
     "has built embeng 0.1.0"),
    ("DKMS cannot build it, since headers are missing",
     {**UNBUILT, DKMS + "/source/dkms.conf": "", MODULES + "/build": None}, {"driver-built": P}, 9,
     "linux-headers-" + RELEASE),
    ("a module that depmod has not seen", {**UNBUILT, MODULES + "/extra/embeng.ko": "a module"},
     {"driver-built": P}, 9, "depmod"),
    ("a module in modules.dep alone", {**UNLOADED, MODULES + "/updates/dkms/embeng.ko": None},
     {"driver-loaded": P}, 9, "is not there"),
    ("a module below /usr/lib, without the link", {**UNLOADED, **moved("/lib/", "/usr/lib/")},
     {"driver-loaded": P}, 9, ""),
    ("a kernel that takes no modules", {**UNLOADED, "/proc/sys/kernel/modules_disabled": "1\n"},
     {"driver-loaded": P}, 9, "kernel.modules_disabled"),
    ("a module that is just loaded", {"/sys/module/embeng/initstate": "coming\n"},
     {"driver-loaded": W}, 0, "coming"),
    ("a module of another name", {**UNBUILT, MODULES + "/modules.dep": "x/embeng.kof:\ny/embeng_emu.ko:\n"},
     {"driver-built": P}, 9, ""),
    ("not loaded", UNLOADED, {"driver-loaded": P}, 9, "is not loaded"),
    ("blacklisted", {**UNLOADED, "/etc/modprobe.d/x.conf": "\n  blacklist  embeng\n"},
     {"driver-blacklisted": P}, 9, "/etc/modprobe.d/x.conf"),
    ("installed by a command that fails",
     {**UNLOADED, "/usr/lib/modprobe.d/y.conf": "install embeng /bin/false\n"},
     {"driver-blacklisted": P}, 9, "/usr/lib/modprobe.d/y.conf"),
    ("blacklisted when the kernel starts",
     {**UNLOADED, "/proc/cmdline": "quiet module_blacklist=nouveau,embeng\n"},
     {"driver-blacklisted": P}, 9, "module_blacklist"),
    ("blacklisted for modprobe", {**UNLOADED, "/proc/cmdline": "modprobe.blacklist=embeng\n"},
     {"driver-blacklisted": P}, 9, "modprobe.blacklist"),
    *((f"blacklisted by {line!r}", blacklisted(line), {"driver-blacklisted": P}, 9,
       "/etc/modprobe.d/x.conf")
      for line in ("blacklist\tembeng # for now", "blacklist \\\nembeng", "install embeng exit 1",
                   "install embeng /bin/echo embeng is off", "install embeng /bin/sh -c 'exit 1'",
                   "install\tembeng  /usr/bin/false", "alias embeng off",
                   "alias pci:v00000EB0d*sv*sd*bc*sc*i* off")),
    *((f"loaded by {line!r}", blacklisted(line), {"driver-loaded": P}, 9, "is not loaded")
      for line in ("install embeng /sbin/modprobe --ignore-install embeng && /bin/true",
                   "install embeng /usr/local/sbin/load-embeng.sh", "install embeng",
                   "install embeng /sbin/modprobe -i $CMDLINE_OPTS embeng; /bin/true",
                   "options embeng blacklist=1", "softdep embeng pre: false")),
    *((f"a blacklist in {folder}", {**UNLOADED, folder + "/x.conf": "blacklist embeng\n"},
       {"driver-blacklisted": P}, 9, folder)
      for folder in ("/run/modprobe.d", "/usr/local/lib/modprobe.d", "/lib/modprobe.d")),
    ("a blacklist that an empty file hides",
     blacklisted("# none", **{"/usr/lib/modprobe.d/x.conf": "blacklist embeng\n"}),
     {"driver-loaded": P}, 9, ""),
    ("a blacklist that a link to /dev/null hides",
     {**UNLOADED, "/run/modprobe.d/x.conf": Link("/dev/null"),
      "/lib/modprobe.d/x.conf": "blacklist embeng\n"}, {"driver-loaded": P}, 9, ""),
    ("a blacklist that hides another file",
     blacklisted("blacklist embeng", **{"/usr/lib/modprobe.d/x.conf": "# none\n"}),
     {"driver-blacklisted": P}, 9, "/etc/modprobe.d/x.conf"),
    *((f"blacklisted by the words {words[:60]}", booted(words), {"driver-blacklisted": P}, 9, word)
      for words, word in (
          ('module_blacklist="nouveau,embeng" quiet', "module_blacklist"),
          ('"module_blacklist=embeng"', "module_blacklist"),
          ("module-blacklist=embeng", "module_blacklist"),
          ("module_blacklist=" + ",".join(f"module{i}" for i in range(90)) + ",embeng",
           "module_blacklist"),
          ("modprobe.blacklist=embeng modprobe.blacklist=nouveau", "modprobe.blacklist"))),
    *((f"not blacklisted by the words {words}", booted(words), {"driver-loaded": P}, 9, "")
      for words in ("module_blacklist=embeng module_blacklist=nouveau", "module_blacklist",
                    "modprobe.blacklist=embeng_emu", 'init="/bin/x module_blacklist=embeng"')),
    ("another module is blacklisted",
     {**UNLOADED, "/etc/modprobe.d/x.conf": "blacklist embeng_emu\n",
      "/etc/modprobe.d/y.txt": "blacklist embeng\n",
      "/proc/cmdline": "xmodule_blacklist=embeng module_blacklist=embeng_emu\n"},
     {"driver-loaded": P}, 9, ""),
    ("blacklisted and loaded", {"/etc/modprobe.d/x.conf": "blacklist embeng\n"},
     {"driver-blacklisted": W}, 0, "loaded all the same"),
    ("an unsigned module, signatures enforced",
     {**ENFORCED, MODULES + "/updates/dkms/embeng.ko": "a module"}, {"driver-signed": P}, 9,
     "module.sig_enforce"),
    *((f"an unsigned module, {word}",
       booted(word, **{MODULES + "/updates/dkms/embeng.ko": "a module"}),
       {"driver-signed": P} if enforced else {"driver-loaded": P}, 9,
       "module.sig_enforce" if enforced else "")
      for word, enforced in (("module.sig_enforce", True), ("module.sig_enforce=y", True),
                             ("module.sig_enforce=N", False), ("module.sig_enforce=off", False))),
    ("an unsigned module, Secure Boot, and lockdown is not known",
     {**UNLOADED, MODULES + "/updates/dkms/embeng.ko": "a module", SECURE_BOOT: b"\6\0\0\0\1",
      "/sys/kernel/security/lockdown": None}, {"driver-signed": W, "driver-loaded": P}, 9,
     "has no signature"),
    ("an unsigned module, Secure Boot, and nothing is locked down",
     {**UNLOADED, MODULES + "/updates/dkms/embeng.ko": "a module", SECURE_BOOT: b"\6\0\0\0\1"},
     {"driver-loaded": P}, 9, ""),
    ("an unsigned module, lockdown and Secure Boot",
     {**UNLOADED, MODULES + "/updates/dkms/embeng.ko": "a module", SECURE_BOOT: b"\6\0\0\0\1",
      "/sys/kernel/security/lockdown": "none [integrity] confidentiality\n"},
     {"driver-signed": P}, 9, "lockdown enforces signatures (Secure Boot is on)"),
    ("a compressed module, signatures enforced",
     {**ENFORCED, MODULES + "/modules.dep": "updates/embeng.ko.xz:\n"},
     {"driver-signed": W, "driver-loaded": P}, 9, "modinfo"),
    ("a signed module, signatures enforced", ENFORCED, {"driver-loaded": P}, 9, ""),
    ("the kernel had an oops", {"/proc/sys/kernel/tainted": "12416\n"}, {"taint": W}, 0, "oops"),
    ("a machine check", {"/proc/sys/kernel/tainted": "16\n"}, {"taint": W}, 0, "machine check"),
    ("no firmware", {**UNBOUND, IMAGE: None, RECOVERY: None}, {"firmware-file": P}, 10, "missing"),
    ("no firmware, and it runs", {IMAGE: None, RECOVERY: None}, {"firmware-file": W}, 0,
     "keeps the image"),
    ("a recovery image alone", {**UNBOUND, IMAGE: None}, {"firmware-file": W, "driver-bound": P}, 9,
     "recovery.fw is there"),
    ("compressed firmware", {IMAGE: None, IMAGE + ".zst": b"(\xb5/\xfd"}, {}, 0, ""),
    ("firmware below the path of the kernel's parameter",
     {IMAGE: None, "/sys/module/firmware_class/parameters/path": "/opt/fw\n",
      "/opt/fw/embeng/embeng.fw": image((0, 2, 0, 0))}, {}, 0, ""),
    ("firmware that is none", refused(3, "this is not a firmware image"), {"firmware-refused": P},
     10, "not a firmware image"),
    ("an upload that was refused",
     {PCI + "/firmware_refused": "error 2, byte 24: the length of the image is not\n"},
     {"firmware-refused": W}, 0, "another runs"),
    ("firmware that is too old", refused(6, "the image is older"), {"firmware-old": P}, 10,
     "older"),
    ("installed firmware that is too old", {PCI + "/firmware_minimum": "0.2.0.1\n"},
     {"firmware-old": W}, 0, "below version 0.2.0.1"),
    ("unsigned firmware", refused(17, "the image is not signed"), {"firmware-signature": P}, 10,
     "not signed"),
    ("firmware of an unknown signer", refused(18, "the image is signed by a key"),
     {"firmware-signature": P}, 10, "signed by a key"),
    ("firmware that was changed", refused(19, "the signature is not of this image"),
     {"firmware-signature": P}, 10, "not of this image"),
    ("firmware that cannot be read",
     {**UNBOUND, DRIVER + "/refusals": f"{ADDRESS} firmware -2: {IMAGE} cannot be read\n"},
     {"driver-probe": P}, 10, "cannot be read"),
    ("the driver gave it up",
     {**UNBOUND, DRIVER + "/refusals": f"{ADDRESS} device -5: the kernel's log says why\n"},
     {"driver-probe": P}, 7, "device -5"),
    ("a reset without an answer",
     {**UNBOUND, DRIVER + "/refusals": f"{ADDRESS} device -110: the kernel's log says why\n"},
     {"driver-probe": P}, 7, "parameters/answer_timeout_ms"),
    ("a boot without an answer",
     {**UNBOUND, DRIVER + "/refusals": f"{ADDRESS} firmware -110: the kernel's log says why\n"},
     {"driver-probe": P}, 10, "parameters/answer_timeout_ms"),
    ("the recovery image runs", {PCI + "/firmware_image": "embeng/recovery.fw\n",
                                 PCI + "/firmware_refused": "error 9, byte 5: a section\n"},
     {"firmware-fallback": W}, 0, "error 9"),
    ("not bound", UNBOUND, {"driver-bound": P}, 9, "not bound"),
    ("kept for another driver", {**UNBOUND, PCI + "/driver_override": "vfio-pci\n"},
     {"driver-bound": P}, 9, "driver_override"),
    ("another driver has it", {**UNBOUND, PCI + "/driver": Link("../drivers/vfio-pci")},
     {"driver-bound": P}, 5, "'vfio-pci'"),
    ("a virtual machine has its group",
     {**UNBOUND, "/sys/kernel/iommu_groups/7/devices/0000:01:00.1": Folder,
      "/sys/bus/pci/devices/0000:01:00.1/driver": Link("../drivers/vfio-pci")},
     {"iommu-group": P}, 5, "0000:01:00.1"),
    ("a virtual machine has its group, by a driver for its kind",
     {**UNBOUND, "/sys/kernel/iommu_groups/7/devices/0000:01:00.1": Folder,
      "/sys/bus/pci/devices/0000:01:00.1/driver": Link("../drivers/mlx5_vfio_pci")},
     {"iommu-group": P}, 5, "0000:01:00.1"),
    ("wedged", {PCI + "/resets/wedged": "1\n"}, {"wedged": P}, 7, "did not come back"),
    ("wedged, since its firmware was refused",
     {PCI + "/resets/wedged": "1\n", PCI + "/firmware_version": "0.0.0.0\n",
      PCI + "/firmware_refused": "error 11, byte 384, self-test 2: a self-test failed\n"},
     {"firmware-refused": P, "wedged": P}, 10, "no image is booted"),
    ("readings of a minute ago", {PCI + "/readings_age_ms": "60000\n"}, {"readings": W}, 0, "60 s"),
    ("it hung", {PCI + "/resets/engines": "3\n"}, {"hung": W}, 0, "the engine 3 times"),
    ("it hung and left a dump", {PCI + "/resets/queues": "1\n", PCI + "/devcoredump":
                                 Link("../devcoredump/devcd4")}, {"hung": W}, 0, "1 queues"),
    ("memory errors", {PCI + "/counters/ecc_correctable": "5\n"}, {"ecc": W}, 0, "5 memory errors"),
    ("too hot", {PCI + "/hwmon/hwmon3/temp1_input": "98000\n"}, {"temperature": W}, 0,
     "98 degrees"),
    ("no node", {NODE: None}, {"node": P}, 6, "/dev/accel has not"),
    ("a container without the node",
     {NODE: None, "/proc/self/mountinfo": MOUNTS.replace("devtmpfs", "tmpfs")}, {"node": P}, 6,
     "container"),
    ("no node, and mounts are not known", {NODE: None, "/proc/self/mountinfo": None}, {"node": P}, 6,
     "/dev/accel has not"),
    ("a container without a name for the group", {**CONTAINER, **node(group=988)}, {}, 0, ""),
    ("a container whose user is not in the group",
     {**CONTAINER, **node(group=988, opens="EACCES")}, {"node-mode": P}, 4, "--group-add 988"),
    ("a container with the group's name, whose user is not in it",
     {**CONTAINER, **node(opens="EACCES")}, {"node-access": P}, 4, "--group-add 106"),
    ("a container without root",
     {**CONTAINER, **node(group=65534, opens="EACCES"), "/proc/self/uid_map": "0 1000 1\n"},
     {"node-mode": P}, 4, "keep-groups"),
    ("no node in the kernel", {PCI + "/accel/accel0/dev": None, PCI + "/accel/accel0": None},
     {"node": P}, 6, "made no node"),
    ("a file in the node's place", {NODE: "data\n"}, {"node": P}, 6, "no device node"),
    ("a node of another device", node(number="261:1"), {"node-number": P}, 6, "261:1"),
    ("a node of root's group", node("0600", 0, opens="EACCES"), {"node-mode": P}, 4, "group root"),
    ("a node of root's group, for root", node("0600", 0), {"node-mode": W}, 0, "0600"),
    ("a node for everybody", node("0666"), {"node-mode": W}, 0, "0666"),
    ("a node of a group without a name", node("0660", 99, opens="EACCES"), {"node-mode": P}, 4,
     "group 99"),
    ("a user outside of the group", node(opens="EACCES"), {"node-access": P}, 4,
     "not in the group render"),
    ("a control group that forbids the node", node(opens="EPERM"), {"node-access": P}, 4,
     "control group"),
    ("a node without a device", node(opens="ENODEV"), {"node-access": P}, 6, "fails"),
    ("little locked memory", {"/proc/self/limits": limits(8388608)}, {"memlock": W}, 0,
     "8192 KiB"),
    ("little locked memory, for root", {"/proc/self/limits": limits(8388608),
                                        "/proc/self/status": status(0, 1 << 14)}, {}, 0, ""),
    ("little locked memory, for root of a container without root",
     {"/proc/self/limits": limits(8388608), "/proc/self/status": status(0, 1 << 14),
      "/proc/self/uid_map": "         0       1000          1\n"}, {"memlock": W}, 0, "memlock=-1"),
    ("little locked memory, for root of the first user namespace",
     {"/proc/self/limits": limits(8388608), "/proc/self/status": status(0, 1 << 14),
      "/proc/self/uid_map": "         0          0 4294967295\n"}, {}, 0, ""),
    ("a control group that is slowed down",
     {GROUP + "/memory.high": f"{128 << 20}\n", GROUP + "/memory.current": f"{32 << 20}\n"},
     {"memory-limit": W}, 0, GROUP + "/memory.high"),
    ("a limit of addresses",
     {"/proc/self/limits": limits("unlimited").replace("space         unlimited",
                                                       "space         200000000")},
     {"memory-limit": W}, 0, "`ulimit -v unlimited`"),
    ("little memory that nobody uses",
     {"/proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable: 100000 kB\nSwapTotal: 0 kB\n"},
     {"memory-limit": W}, 0, "the machine's memory"),
    ("a control group of version 1",
     {"/proc/self/cgroup": "5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n1:name=systemd:/\n",
      "/proc/self/mountinfo": MOUNTS.splitlines()[0] + "\n"
      "30 1 0:30 /docker/x /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
      "31 1 0:31 /docker/x /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n",
      "/sys/fs/cgroup/memory/memory.limit_in_bytes": f"{128 << 20}\n",
      "/sys/fs/cgroup/memory/memory.usage_in_bytes": f"{32 << 20}\n",
      "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000\n",
      "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n"},
     {"memory-limit": W, "processor-quota": W}, 0, "memory.limit_in_bytes"),
    ("a control group with little memory",
     {GROUP + "/memory.max": f"{128 << 20}\n", GROUP + "/memory.current": f"{32 << 20}\n"},
     {"memory-limit": W}, 0, "96 MiB of 128 MiB"),
    ("a quota of processor time", {GROUP + "/cpu.max": "150000 100000\n"}, {"processor-quota": W},
     0, "2 of 8 processors"),
    ("a quota of a part of the last processor", {GROUP + "/cpu.max": "750000 100000\n"},
     {"processor-quota": W}, 0, "that of 7.50 processors, and there are 8"),
    ("a quota of all processors", {GROUP + "/cpu.max": "800000 100000\n"}, {}, 0, ""),
    ("a quota of half a processor, of one",
     {GROUP + "/cpu.max": "50000 100000\n", "/proc/self/status": status(processors="1")},
     {"processor-quota": W}, 0, "that of 0.50 processors"),
    ("a strict IOMMU", {"/sys/kernel/iommu_groups/7/type": "DMA\n"}, {"iommu-mode": W}, 0,
     "strict"),
    ("no IOMMU", {PCI + "/iommu_group": None}, {}, 0, ""),
    ("swiotlb=force", {"/proc/cmdline": "swiotlb=65536,force\n"}, {"swiotlb": W}, 0,
     "swiotlb=force"),
    ("swiotlb=noforce", {"/proc/cmdline": "swiotlb=noforce\n"}, {}, 0, ""),
    ("a DMA mask of 32 bits", {PCI + "/iommu_group": None, PCI + "/dma_mask_bits": "32\n"},
     {"swiotlb": W}, 0, "DMA mask"),
    ("a DMA mask that reaches all memory", {PCI + "/iommu_group": None, PCI + "/dma_mask_bits": "40\n"},
     {}, 0, ""),
    ("a narrow link", {PCI + "/current_link_width": "4\n"}, {"link": W}, 0, "4 lanes of 16"),
    ("a slow link", {PCI + "/current_link_speed": "2.5 GT/s PCIe\n"}, {"link": W}, 0,
     "2.5 GT/s PCIe and could at 16.0"),
    ("a narrow and slow link",
     {PCI + "/current_link_width": "4\n", PCI + "/current_link_speed": "8 GT/s\n"}, {"link": W}, 0,
     "4 lanes of 16, at 8 GT/s, and could run at 16.0"),
    ("no link", {PCI + "/current_link_speed": "Unknown\n", PCI + "/max_link_speed": "Unknown\n",
                 PCI + "/current_link_width": "0\n", PCI + "/max_link_width": "255\n"}, {}, 0, ""),
    ("errors of the link", {PCI + "/aer_dev_correctable": counters("COR", 12)}, {"aer": W}, 0,
     "12 errors"),
    ("errors of the link that lost data", {PCI + "/aer_dev_fatal": counters("FATAL", 2)},
     {"aer": P}, 7, "2 errors"),
    ("no huge pages",
     {"/sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]\n"},
     {"huge-pages": W}, 0, "switched off"),
    ("slow processors",
     {"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n"},
     {"cpu-governor": W}, 0, "1 of 2"),
    ("blanks around words", {PCI + "/power_state": " D0 \n", PCI + "/resets/wedged": "\t1 \n",
                             "/proc/sys/kernel/tainted": " 512\n"}, {"wedged": P, "taint": W}, 7,
     "tainted 512"),
]
