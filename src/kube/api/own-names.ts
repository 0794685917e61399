// Names that Portcullis itself has in a cluster and in its own API server.

/** The namespace of the gateway: its Secrets, its Leases, and Secrets of UpstreamClusters. */
export const OWN_NAMESPACE = 'portcullis-system'

/** The groups that may do everything, and read everything, in the embedded API server. */
export const ADMIN_GROUP = 'portcullis:admins'
export const VIEWER_GROUP = 'portcullis:viewers'

/** The API group of what is about scaling. */
export const SCALE_GROUP = 'scale.portcullis.io'

/** Label of a CRD: the version of Portcullis that wrote it. An older one leaves it alone. */
export const VERSION_LABEL = 'portcullis.io/version'
