// The user of a kubeconfig who logs in: clients run `portcullis login` for the token.

import { EXEC_API_VERSION } from './exec-credential.ts'
import { DEFAULT_REDIRECT, type LoginFlags, readLoginSpec } from './login-spec.ts'

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
