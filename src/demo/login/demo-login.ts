// Logins in the demo: what its clusters, its kubeconfig and its guide need to know of the provider.

import { join, resolve } from 'node:path'
import { stringify } from 'yaml'
import { COMMAND, PROGRAM_FILES } from '../../kit/io/program/build.ts'
import { EXEC_API_VERSION } from '../../login/core/exec-credential.ts'
import type { KeyPair } from '../../pki/io/pki.ts'
import { LOGIN_CLIENT } from './oidc-options.ts'
import { type DemoProvider, startDemoProvider } from './provider.ts'

export interface DemoLogin extends DemoProvider {
  /** PEM. */
  readonly ca: string
  /** The demo's directory. */
  readonly dir: string
}

/** Before the names of users and groups: a user of the provider is not the user of a token or a certificate of that name. */
export const LOGIN_PREFIX = 'oidc:'

/** Resolves with undefined in an installed package, which has no provider. @param dir of the demo */
export async function startDemoLogin(ca: KeyPair, dir: string): Promise<DemoLogin | undefined> {
  const provider = await startDemoProvider(ca)
  return provider === undefined ? undefined : { ...provider, ca: ca.certPem, dir }
}

/** @param cluster text of an UpstreamCluster, which keeps its comments */
export function withLogin(cluster: string, login: DemoLogin | undefined): string {
  if (login === undefined) return cluster
  const mapping = (claim: string): object => ({ claim, prefix: LOGIN_PREFIX })
  const issuer = {
    url: login.issuer,
    discoveryURL: login.discoveryUrl,
    audiences: [LOGIN_CLIENT],
    certificateAuthority: login.ca.replaceAll('\r', ''),
  }
  const jwt = [{ issuer, claimMappings: { username: mapping('email'), groups: mapping('groups') } }]
  const block = stringify({ jwt }).replaceAll(/^(?=.)/gm, '    ')
  const key = '  authentication:\n'
  return cluster.includes(`\n${key}`)
    ? cluster.replace(`\n${key}`, () => `\n${key}${block}`)
    : `${cluster.trimEnd()}\n${key}${block}`
}

/** The user of a kubeconfig: kubectl runs the login. */
export function loginUser(login: DemoLogin): object {
  // Without a path it would be looked up on PATH, and a relative one is relative to the kubeconfig.
  const command = join(PROGRAM_FILES.testHarness, '../..', COMMAND)
  const args = loginArguments({ ...login, dir: resolve(login.dir) })
  return { exec: { apiVersion: EXEC_API_VERSION, command, args, interactiveMode: 'IfAvailable' } }
}

function loginArguments(login: DemoLogin): readonly string[] {
  return ['login', '--issuer', login.issuer, '--client-id', LOGIN_CLIENT, ...files(login)]
}

/** Tokens are in the demo's directory, which it empties: those of an earlier run are not accepted, and nothing is left in the user's home. */
function files({ dir }: DemoLogin): readonly string[] {
  return ['--issuer-ca-file', join(dir, 'pki/ca.crt'), '--token-dir', join(dir, 'login')]
}

export function loginGuide(login: DemoLogin | undefined, adminPort: number): string {
  if (login === undefined) {
    return '\nThe demo of a source checkout (npm start) also has an OpenID provider, at which you can log in as alice or bob.'
  }
  const run = (...args: readonly string[]): string => `${COMMAND} ${args.join(' ')}`
  return `
Logging in, as with the OpenID provider of a company: choose alice. There are no passwords. The browser does not know the CA in ${login.dir}/pki, so
accept its warning. Without a browser, the command prints an address and a code to enter; --flow device does this anywhere:
  ${run(...loginArguments(login))}
kubectl runs the same command to get its token. The gateway verifies the token and impersonates the user, so the cluster knows nothing of the provider:
  kubectl --context prod-login auth whoami
  kubectl --context prod-login label --overwrite configmap features reviewed-by=alice
  ${COMMAND} sessions prod --admin http://127.0.0.1:${adminPort}
Log out, also on the page that opens, and log in as bob, who may read in both clusters, but write in neither:
  ${run('logout', ...files(login))}
  ${run(...loginArguments(login), '--flow device')}
  kubectl --context staging-login get pods
  kubectl --context prod-login label --overwrite configmap features reviewed-by=bob`
}
