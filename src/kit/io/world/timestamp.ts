// RFC 3339 times for log lines, as Kubernetes writes them (metav1.MicroTime).

let secondMs = -1
let secondText = ''

/** UTC with microseconds: `2024-05-01T12:00:00.123456Z`. Cheap for repeated calls within a second. */
export function rfc3339Micro(wallMs: number): string {
  return `${upToSecond(wallMs)}.${String(Math.floor((wallMs % 1000) * 1000)).padStart(6, '0')}Z`
}

function upToSecond(wallMs: number): string {
  const start = Math.floor(wallMs / 1000) * 1000
  if (start !== secondMs) {
    secondMs = start
    secondText = new Date(start).toISOString().slice(0, 19)
  }
  return secondText
}
