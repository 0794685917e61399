/** UTF-8 text as base64, the form of []byte in Kubernetes JSON and of PEM in a kubeconfig. */
export function toBase64(text: string): string {
  return Buffer.from(text).toString('base64')
}
