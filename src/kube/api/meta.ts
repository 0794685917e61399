// Kubernetes object metadata, as far as Portcullis reads or writes it (apimachinery/pkg/apis/meta/v1/types.go).

/** metav1.ObjectMeta: the fields Portcullis uses. */
export interface ObjectMeta {
  readonly name: string
  readonly generateName?: string
  readonly namespace?: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly generation?: number
  readonly creationTimestamp?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
}

/** What every Kubernetes object carries. */
export interface KubeObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
}
