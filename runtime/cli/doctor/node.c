// SPDX-License-Identifier: MIT
/*
 * Checks of the device node: whether it is there, whether it is the device's, whose it is, and
 * whether this process may open it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

#define GROUP "render"

static int look_at_node(const struct machine *m, const struct function *device,
			struct tree_node *node)
{
	char path[TREE_PATH];

	return tree_node(m->tree, tree_path(path, "/dev/accel/%s", device->node), node);
}

/*
 * The kernel makes nodes by itself where /dev is a devtmpfs. In a container, and in a systemd unit with
 * PrivateDevices=, /dev is another one. Nothing is said of them where the mounts are not known.
 */
static bool makes_nodes(const struct machine *m)
{
	char *text = tree_text(m->tree, "/proc/self/mountinfo", TREE_TEXT);
	bool makes = !text;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		char point[64] = "", type[32] = "";
		const char *dash;

		line += *line == '\n';
		dash = strstr(line, " - ");
		if (dash && sscanf(line, "%*s %*s %*s %*s %63s", point) == 1 &&
		    sscanf(dash + 3, "%31s", type) == 1 && !strcmp(point, "/dev"))
			makes = !strcmp(type, "devtmpfs");
	}
	free(text);
	return makes;
}

void check_node(const struct machine *m, const struct function *device, struct finding *f)
{
	struct tree_node node;
	int err;

	if (!*device->node) {
		found_problem(f, CLI_NO_DEVICE, "the driver has made no node for it");
		found_fix(f, "`dmesg | grep %s` says why", device->address);
		return;
	}
	err = look_at_node(m, device, &node);
	if (!err) {
		found_ok(f, "/dev/accel/%s is there", device->node);
		return;
	}
	if (err == -EINVAL) {
		found_problem(f, CLI_NO_DEVICE, "/dev/accel/%s is no device node", device->node);
		found_fix(f, "`rm /dev/accel/%s` as root, then bind the driver to %s anew",
			  device->node, device->address);
		return;
	}
	if (err == -EACCES) {
		found_problem(f, CLI_PERMISSION, "this process may not look into /dev/accel");
		found_fix(f, "`chmod 0755 /dev/accel` as root");
		return;
	}
	if (makes_nodes(m)) {
		found_problem(f, CLI_NO_DEVICE,
			      "the kernel has the node %s, but /dev/accel has not", device->node);
		found_fix(f,
			  "As root: `echo %s >/sys/bus/pci/drivers/embeng/unbind`, then the same "
			  "with bind, which makes the node again",
			  device->address);
		return;
	}
	found_problem(f, CLI_NO_DEVICE,
		      "this container has no /dev/accel/%s, though the machine has the device",
		      device->node);
	found_fix(f,
		  "Start the container with the node: `docker run --device /dev/accel/%s`, with "
		  "podman alike, or in a pod's resources by a device plugin; a systemd unit sees "
		  "it with PrivateDevices=no",
		  device->node);
}

void check_node_number(const struct machine *m, const struct function *device, struct finding *f)
{
	unsigned int major, minor;
	char path[TREE_PATH], line[TREE_LINE];
	struct tree_node node;

	tree_path(path, "accel/%s/dev", device->node);
	if (!read_device_line(m, device, path, line, sizeof(line)) ||
	    sscanf(line, "%u:%u", &major, &minor) != 2 || look_at_node(m, device, &node)) {
		found_nothing(f, "the kernel does not say which number it has");
		return;
	}
	if (node.major == major && node.minor == minor) {
		found_ok(f, "the node has the device's number %u:%u", major, minor);
		return;
	}
	found_problem(f, CLI_NO_DEVICE, "/dev/accel/%s has the number %u:%u, the device %u:%u",
		      device->node, node.major, node.minor, major, minor);
	found_fix(
		f,
		"It is left over from another device or was made by hand. As root: `rm "
		"/dev/accel/%s`, then `mknod /dev/accel/%s c %u %u`, or start the container again",
		device->node, device->node, major, minor);
}

/* Reads a group's name from /etc/group; its number in digits if it has none there. */
static void read_group_name(const struct machine *m, unsigned int group, char name[40])
{
	char *text = tree_text(m->tree, "/etc/group", TREE_TEXT);
	unsigned int number;

	snprintf(name, 40, "%u", group);
	for (const char *line = text; line; line = strchr(line, '\n')) {
		char found[33];

		line += *line == '\n';
		if (sscanf(line, "%32[^:\n]:%*[^:\n]:%u", found, &number) == 2 && number == group) {
			snprintf(name, 40, "%.32s", found);
			break;
		}
	}
	free(text);
}

/*
 * A container has a list of groups of its own, in which the machine's group has another name or none,
 * and udev does not run there.
 */
static void judge_container_node(const struct machine *m, const struct function *device,
				 const struct tree_node *node, struct finding *f)
{
	if (node->opens != -EACCES) {
		found_ok(f, "/dev/accel/%s is of the machine's group %u, mode %04o", device->node,
			 node->group, node->mode);
		return;
	}
	found_problem(
		f, CLI_PERMISSION,
		"/dev/accel/%s is of the machine's group %u, mode %04o, and this process of a "
		"container may not open it",
		device->node, node->group, node->mode);
	if (has_user_namespace(m))
		found_fix(f,
			  "Be in the group " GROUP " outside of the container, and start it with "
			  "`--group-add keep-groups` (podman)");
	else
		found_fix(f, "Start the container with `docker run --group-add %u`", node->group);
}

void check_node_mode(const struct machine *m, const struct function *device, struct finding *f)
{
	struct tree_node node;
	char group[40];

	if (look_at_node(m, device, &node)) {
		found_nothing(f, "the node cannot be looked at");
		return;
	}
	read_group_name(m, node.group, group);
	if (!strcmp(group, GROUP) && node.mode == 0660) {
		found_ok(f, "/dev/accel/%s is of the group " GROUP ", mode 0660", device->node);
		return;
	}
	if (node.mode == 0660 && !makes_nodes(m)) {
		judge_container_node(m, device, &node, f);
		return;
	}
	if (node.opens == -EACCES)
		found_problem(f, CLI_PERMISSION,
			      "/dev/accel/%s is of the group %s, mode %04o, and this process may "
			      "not open it",
			      device->node, group, node.mode);
	else
		found_warning(f, "/dev/accel/%s is of the group %s, mode %04o", device->node, group,
			      node.mode);
	found_fix(f,
		  "The udev rule of the driver sets group and mode: install 60-embeng.rules in "
		  "/etc/udev/rules.d, then as root `udevadm control --reload` and `udevadm trigger "
		  "--action=add --subsystem-match=accel`; for now: `chgrp " GROUP
		  " /dev/accel/%s; chmod 0660 /dev/accel/%s`",
		  device->node, device->node);
}

static void explain_refused_node(const struct machine *m, const struct tree_node *node,
				 struct finding *f)
{
	char group[40];

	read_group_name(m, node->group, group);
	if (node->opens == -EACCES) {
		found_problem(f, CLI_PERMISSION, "this user is not in the group %s", group);
		if (!makes_nodes(m)) {
			found_fix(f,
				  "Start the container with `docker run --group-add %u`; with "
				  "podman without root, be in the group outside and use "
				  "`--group-add keep-groups`",
				  node->group);
			return;
		}
		found_fix(f, "`usermod -aG %s USER` as root, then log in again", group);
		return;
	}
	found_problem(f, CLI_PERMISSION,
		      "the control group of this process does not let it use the device");
	found_fix(f,
		  "Start the container with `--device /dev/accel/...` and not with a bind mount of "
		  "the node alone; for a systemd unit: DeviceAllow=char-accel rw");
}

void check_node_access(const struct machine *m, const struct function *device, struct finding *f)
{
	struct tree_node node;

	if (look_at_node(m, device, &node)) {
		found_nothing(f, "the node cannot be looked at");
	} else if (!node.opens) {
		found_ok(f, "this process may open /dev/accel/%s", device->node);
	} else if (node.opens == -EACCES || node.opens == -EPERM) {
		explain_refused_node(m, &node, f);
	} else {
		found_problem(f, exit_of_errno(node.opens), "opening /dev/accel/%s fails: %s",
			      device->node, strerror(-node.opens));
		found_fix(f, "`dmesg | grep %s` says why", device->address);
	}
}
