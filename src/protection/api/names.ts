// What a PodProtector is called, and what a bucket without a counter means.

export const POD_PROTECTOR_GROUP = 'podseidon.kubewharf.io'
export const POD_PROTECTOR_VERSION = 'v1alpha1'
export const POD_PROTECTOR_API_VERSION = 'podseidon.kubewharf.io/v1alpha1'
export const POD_PROTECTOR_KIND = 'PodProtector'

/** Of a bucket that has none: it stands for one pod. */
export const DEFAULT_COUNTER = 1
