// How large a request to the audit webhook may be: the setting for the largest event must fit in it.

/** A larger batch for the webhook is split; kube-apiserver's default of --audit-webhook-truncate-max-batch-size. */
export const MAX_BATCH_BYTES: number = 10 * 1024 * 1024
