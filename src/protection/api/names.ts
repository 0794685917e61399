// Names of a PodProtector, and the default counter of a bucket.

export const POD_PROTECTOR_GROUP = 'podseidon.kubewharf.io'
export const POD_PROTECTOR_VERSION = 'v1alpha1'
export const POD_PROTECTOR_API_VERSION = 'podseidon.kubewharf.io/v1alpha1'
export const POD_PROTECTOR_KIND = 'PodProtector'

/** A bucket without a counter stands for one pod. */
export const DEFAULT_COUNTER = 1
