/** UTF-8 text as base64, as []byte stands in Kubernetes' JSON and PEM in a kubeconfig. */
export function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
