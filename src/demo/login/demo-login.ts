// Logins in the demo: what its clusters, its kubeconfig and its guide need to know of the provider.

import { generateKeyPairSync, type JsonWebKey, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { stringify } from 'yaml'
import { COMMAND, PROGRAM_FILES } from '../../kit/io/program/build.ts'
import { EXEC_API_VERSION } from '../../login/core/exec-credential.ts'
import { issueCertificate, type KeyPair } from '../../pki/io/pki.ts'
import { LOGIN_CLIENT, LOGIN_USERS, OIDC_OPTIONS, type OidcProvider, SIGNATURE } from './oidc-options.ts'
import { choicePage, PAGE_HEADERS, page } from './pages.ts'

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

// The OpenID provider of the demo: oidc-provider on a loopback address, with a certificate of the demo's CA. Its users have no passwords; the tokens of
// the demo's other users are known, too (decision 88).

interface DemoProvider {
  /** `https://127.0.0.1:PORT`. */
  readonly issuer: string
  /** Says where its keys are, as far as those who verify its tokens need to know: it is answered without oidc-provider. */
  readonly discoveryUrl: string
  stop(): void
}

const DISCOVERY_PATH = '/keys/openid-configuration'
const KEYS_PATH = '/jwks'
const BAD_REQUEST = 400
const NOT_FOUND = 404

/** Resolves with undefined in an installed package, which does not have oidc-provider. */
async function startDemoProvider(ca: KeyPair): Promise<DemoProvider | undefined> {
  if (PROGRAM_FILES.oidcProvider === '') return undefined
  const names = { commonName: 'demo login', ipAddresses: ['127.0.0.1'] }
  const { certPem: cert, keyPem: key } = issueCertificate(ca, { ...names, usage: 'server' })
  const server = createServer({ cert, key })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const signingKey = newSigningKey()
  const documents = new Map<string | undefined, object>([
    [DISCOVERY_PATH, { issuer, jwks_uri: issuer + KEYS_PATH }],
    [KEYS_PATH, { keys: [publicPart(signingKey)] }],
  ])
  let serve: RequestListener | undefined
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const document = documents.get(request.url)
    if (document !== undefined) {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document))
      return
    }
    // Loaded when a login begins: it takes as long as a tenth of the demo's start.
    serve ??= openProvider(issuer, signingKey)
    serve(request, response)
  })
  return {
    issuer,
    discoveryUrl: issuer + DISCOVERY_PATH,
    stop() {
      server.close()
      server.closeAllConnections()
    },
  }
}

const load = createRequire(import.meta.url)

function openProvider(issuer: string, signingKey: JsonWebKey): RequestListener {
  const { default: Provider } = load(PROGRAM_FILES.oidcProvider) as {
    default: new (issuer: string, options: object) => OidcProvider
  }
  const { createMemoryAdapter } = load(`${PROGRAM_FILES.oidcProvider}/lib/adapters/memory_adapter.js`)
  const provider = new Provider(issuer, {
    ...OIDC_OPTIONS,
    jwks: { keys: [signingKey] },
    cookies: { keys: [randomBytes(32).toString('hex')] },
    adapter: createMemoryAdapter(),
  })
  provider.silent = true
  const answer = provider.callback()
  return (request, response) => {
    const [, path, name] = /^(\/interaction\/[\w-]+)(?:\/(\w+))?$/.exec(request.url ?? '') ?? []
    const done = path === undefined ? answer(request, response) : logIn(provider, path, name, request, response)
    done.catch(() => response.destroy())
  }
}

/** One for each run of the demo: a token of an earlier run is not accepted. */
function newSigningKey(): JsonWebKey {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const kid = randomBytes(8).toString('hex')
  return { ...privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg: SIGNATURE }
}

function publicPart({ d: _, ...key }: JsonWebKey): JsonWebKey {
  return key
}

/** The page on which the user chooses, and the choice: it goes on to where the login began. */
async function logIn(
  provider: OidcProvider,
  path: string,
  name: string | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const show = (status: number, html: string): void => void response.writeHead(status, PAGE_HEADERS).end(html)
  try {
    // Throws if the login was not begun in this browser.
    await provider.interactionDetails(request, response)
  } catch {
    show(
      BAD_REQUEST,
      page('Not logged in', 'This login is over, or was begun in another browser. Begin again in the terminal.'),
    )
    return
  }
  if (name === undefined) {
    show(200, choicePage(LOGIN_USERS, path))
  } else if (request.method === 'POST' && LOGIN_USERS.has(name)) {
    await provider.interactionFinished(request, response, { login: { accountId: name }, consent: {} })
  } else show(NOT_FOUND, page('Not logged in', 'The demo has no such user.'))
}
