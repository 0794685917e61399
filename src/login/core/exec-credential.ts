// The protocol between client-go and a credential plugin (client.authentication.k8s.io/v1, Kubernetes: "client-go credential plugins").

import { recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { DEFAULT_REDIRECT, type LoginFlags, readLoginSpec } from './login-spec.ts'

/** The variable in which clients say what they want. */
export const EXEC_INFO = 'KUBERNETES_EXEC_INFO'
export const EXEC_API_VERSION = 'client.authentication.k8s.io/v1'
/** v1beta1 has the same fields of a token. */
const KNOWN: ReadonlySet<string> = new Set([EXEC_API_VERSION, 'client.authentication.k8s.io/v1beta1'])

/** The version in which the client wants its answer. @param info of EXEC_INFO; '' = not called by a client @throws {UserError} */
export function execApiVersion(info: string): string {
  if (info === '') return EXEC_API_VERSION
  let asked: unknown
  try {
    asked = JSON.parse(info)
  } catch {
    throw new UserError(`${EXEC_INFO} is not JSON`, 'it is set by kubectl and other clients alone; unset it in a shell')
  }
  const version = textOf(recordOf(asked)['apiVersion'])
  if (KNOWN.has(version)) return version
  throw new UserError(
    `${EXEC_INFO} asks for apiVersion ${JSON.stringify(version)}`,
    `write apiVersion: ${EXEC_API_VERSION} into the exec section of the kubeconfig`,
  )
}

/** One line. The client asks again after `expiresAtMs`. */
export function execCredential(apiVersion: string, token: string, expiresAtMs: number): string {
  // Go's metav1.Time has no milliseconds.
  const expirationTimestamp = new Date(Math.floor(expiresAtMs / 1000) * 1000).toISOString().replace('.000Z', 'Z')
  return `${JSON.stringify({ apiVersion, kind: 'ExecCredential', status: { expirationTimestamp, token } })}\n`
}

// The user of a kubeconfig who logs in: clients run `portcullis login` for the token.

/** @param command what clients run: `portcullis`, found on PATH @throws {UserError} */
export function execUser(flags: LoginFlags, command: string): Readonly<Record<string, unknown>> {
  readLoginSpec(flags, 'login-')
  return {
    exec: {
      apiVersion: EXEC_API_VERSION,
      command,
      args: ['login', ...loginArguments(flags)],
      // The browser needs no standard input, so `kubectl apply -f -` may log in, too.
      interactiveMode: 'IfAvailable',
      provideClusterInfo: false,
      installHint: `${command} is not on PATH: it logs in at ${flags.issuer}`,
    },
  }
}

function loginArguments(flags: LoginFlags): string[] {
  const { issuer = '', clientId = '', clientSecret = '', scope, authParam, redirectUrl, issuerCaFile = '' } = flags
  return [
    `--issuer=${issuer}`,
    `--client-id=${clientId}`,
    ...(clientSecret === '' ? [] : [`--client-secret=${clientSecret}`]),
    ...scope.map((one) => `--scope=${one}`),
    ...authParam.map((one) => `--auth-param=${one}`),
    ...(redirectUrl === DEFAULT_REDIRECT ? [] : [`--redirect-url=${redirectUrl}`]),
    ...(issuerCaFile === '' ? [] : [`--issuer-ca-file=${issuerCaFile}`]),
  ]
}
