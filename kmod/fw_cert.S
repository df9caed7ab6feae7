/* SPDX-License-Identifier: GPL-2.0-only */
/* Certificates that are built in: the file that EMBENG_FW_CERT names, DER, one behind another. */
#include <linux/linkage.h>

	.section .rodata
SYM_DATA_START(embeng_fw_cert)
	.incbin EMBENG_FW_CERT
SYM_DATA_END_LABEL(embeng_fw_cert, SYM_L_GLOBAL, embeng_fw_cert_end)
