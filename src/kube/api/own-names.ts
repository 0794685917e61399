// Portcullis' own names in a cluster and in its API server.

/** The gateway's namespace: its Secrets and Leases, and Secrets of UpstreamClusters. */
export const OWN_NAMESPACE = 'portcullis-system'

/** Members have full access to the embedded API server. */
export const ADMIN_GROUP = 'portcullis:admins'
export const VIEWER_GROUP = 'portcullis:viewers'

/** API group of the scaling kinds. */
export const SCALE_GROUP = 'scale.portcullis.io'

/** Label of a CRD: the version of Portcullis that wrote it. An older one leaves it alone. */
export const VERSION_LABEL = 'portcullis.io/version'
