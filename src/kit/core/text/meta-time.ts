// Times in the format of Kubernetes objects (apimachinery/pkg/apis/meta/v1).

/** metav1.Time: UTC, whole seconds. @param ms since the epoch */
export function metaTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

/** metav1.MicroTime. @param ms since the epoch */
export function metaMicroTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z')
}
