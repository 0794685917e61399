// The command line: names, flags and help of every command. serve and demo are passed in from above (src/main.ts). Modules of a
// command are loaded when it runs: otherwise `--version` would load most of the gateway.

import { Argument, Command, type CommandUnknownOpts, Option } from 'commander'
import { addControl } from '../../apiserver/cli/program.ts'
import { collect, forChanges, forControlPlane } from '../../cli/command/flags.ts'
import { type CommandContext, NO_TERMINAL, type Terminal } from '../../cli/command/output.ts'
import { addImport, addInside, addReplay } from '../../cli/program.ts'
import { addLogin } from '../../login/cli/program.ts'
import { execUser } from '../../login/core/exec-credential.ts'
import { DEFAULT_REDIRECT, type LoginFlags } from '../../login/core/login-spec.ts'
import { SUBJECTS } from '../subjects/subjects.ts'

/** A setting of the gateway as a flag. */
interface FlagSetting {
  readonly flag: string
  readonly argument: string
  readonly env: string
  readonly repeatable: boolean
  readonly defaultText: string
  readonly help: string
  /** `serve --help GROUP` shows the settings under `heading`. */
  readonly group: string
  readonly heading: string
  /** Former flags: still parsed, so that the settings can name their replacement. */
  readonly replaced: readonly { readonly flag: string }[]
}

interface ProgramDeps extends Omit<CommandContext, 'done'> {
  /** Name of the program as invoked. Default: portcullis. */
  readonly name?: string
  readonly version: string
  /** Flags of `serve`. */
  settings(): Promise<readonly FlagSetting[]>
  readonly input: AsyncIterable<string>
  /** Default: none, and commands are not interrupted. */
  readonly terminal?: Terminal
  /** Writes to standard output what need not be text. */
  readonly outBytes?: (bytes: Uint8Array) => void
  /** Each resolves with the exit code. */
  serve(flags: Record<string, unknown>): Promise<number>
  /** Default: the program has no demo. */
  demo?(options: {
    real: boolean
    listen: string
    adminListen: string
    controlListen: string
    dir: string
  }): Promise<number>
}

type Context = ProgramDeps & CommandContext

/** Runs one command line; resolves with the exit code. */
export async function runProgram(argv: readonly string[], deps: ProgramDeps): Promise<number> {
  let code = 0
  const done = async (result: Promise<number> | number): Promise<void> => {
    code = await result
  }
  // Only `serve` has them, and loading them loads everything that reads settings.
  const settings = argv.includes('serve') ? await deps.settings() : []
  const context = { ...deps, done }
  const program = createProgram(settings, context)
  const [first, ...path] = argv
  const group = helpGroupOf(argv)
  if (group !== undefined) return helpOfGroup(group, settings, context)
  if (first === '__complete') return (await import('../../cli/completion.ts')).completeWords(program, path, deps.out)
  if (first === 'help' && path.length > 0) return helpOf(program, path, deps)
  try {
    await program.parseAsync(argv, { from: 'user' })
  } catch (error) {
    const exit = error instanceof Error ? Reflect.get(error, 'exitCode') : undefined
    if (typeof exit !== 'number') throw error
    return exit
  }
  return code
}

/** All commands with their flags; docs/commands.md is compared with it. */
export function createProgram(settings: readonly FlagSetting[], context: Context): Command {
  const name = context.name ?? 'portcullis'
  const program = new Command(name)
    .description('Kubernetes-aware layer-7 API gateway in front of kube-apiservers')
    .version(context.version)
    .showHelpAfterError(`(${name} help lists all commands; ${name} help COMMAND shows what one takes)`)
    .exitOverride()
    .configureOutput({ writeOut: context.out, writeErr: context.err })
  addServe(program, settings, context)
  addVersion(program, context)
  addProbe(program, context)
  addInspection(program, context)
  addReplay(program, context)
  addCredentials(program, context)
  addLogin(program, context)
  addRevoke(program, context)
  for (const { addCommands } of SUBJECTS) addCommands?.(program, context)
  addInside(program, context)
  addImport(program, context)
  addControl(program, context, async () => (await import('../api/scheme.ts')).USER_WRITTEN_KINDS)
  if (context.demo !== undefined) addDemo(program, context.demo, context)
  addCompletion(program, context)
  return program
}

/** `serve --help limits`, `help serve limits`: the word after `serve` in a call for help. */
function helpGroupOf(argv: readonly string[]): string | undefined {
  if (argv[0] === 'help' && argv[1] === 'serve') return argv[2]
  const group = argv[0] === 'serve' && (argv[1] === '--help' || argv[1] === '-h') ? argv[2] : undefined
  return group?.startsWith('-') === true ? undefined : group
}

function helpOfGroup(group: string, settings: readonly FlagSetting[], context: Context): number {
  const ofGroup = settings.filter((setting) => setting.group === group)
  if (ofGroup.length === 0) {
    context.err(`error: unknown group '${group}'\n(it is one of ${groupsOf(settings).join(', ')})\n`)
    return 1
  }
  const program = createProgram(ofGroup, context)
  program.commands.find((command) => command.name() === 'serve')?.outputHelp()
  return 0
}

function groupsOf(settings: readonly FlagSetting[]): string[] {
  return [...new Set(settings.map(({ group }) => group))]
}

/** `help protect install`: commander's own help handles one level only. Returns the exit code. */
function helpOf(
  program: CommandUnknownOpts,
  path: readonly string[],
  { err, name = 'portcullis' }: ProgramDeps,
): number {
  let command: CommandUnknownOpts | undefined = program
  for (const name of path) command = command?.commands.find((one) => one.name() === name)
  if (command === undefined) {
    err(`error: unknown command '${path.join(' ')}'\n(${name} help shows them all)\n`)
    return 1
  }
  command.outputHelp()
  return 0
}

function addRevoke(program: Command, { out, err, now, done, terminal = NO_TERMINAL }: Context): void {
  forChanges(program.command('revoke'))
    .description('refuse a certificate, a token or a user from now on, and abort its requests in flight')
    .option('--user <user>', 'user name')
    .option('--certificate <file>', 'client certificate (PEM), or a kubeconfig: its current user')
    .option('--token-file <file>', 'bearer token, or a kubeconfig: its current user')
    .option('--reason <text>', 'recorded with the revocation; with --undo: undo only revocations with this reason')
    .option('--undo', 'lift the revocation', false)
    .option('--timeout <duration>', 'how long to wait until it is in force everywhere', '30s')
    .action(async (clusters, { certificate, yes, dryRun, waveSize, output, except, selector, ...options }) => {
      const given = { ...options, ...(certificate && { certificateFile: certificate }), now, out, err }
      const [cluster] = clusters
      const { onlyCluster } = await import('../../cli/client/chosen-clusters.ts')
      const one = onlyCluster({ ...options, clusters, except, ...(selector !== undefined && { selector }) })
      // --all of a script has always gone on without a question; taking it back shows what was revoked why.
      const everywhere =
        options.all && !options.undo && clusters.length === 0 && selector === undefined && except.length === 0
      const asks = yes || dryRun || waveSize !== undefined || output !== undefined
      const none = cluster === undefined && selector === undefined && !options.all
      if (none || (!dryRun && one !== undefined) || (everywhere && !asks)) {
        const optional = cluster === undefined ? {} : { cluster }
        return done((await import('../../cli/revoke.ts')).revoke({ ...given, ...optional }))
      }
      const chosen = { clusters, except, ...(selector !== undefined && { selector }) }
      const how = { yes, dryRun, ask: terminal.ask, ...(waveSize && { waveSize }), ...(output && { output }) }
      return done((await import('../../cli/revoke-many.ts')).revokeMany({ ...given, ...chosen, ...how }))
    })
}

function addServe(program: Command, settings: readonly FlagSetting[], { serve: run, done }: Context): void {
  const serve = program.command('serve').description('run the gateway')
  serve.helpOption('-h, --help [group]', `show all flags, or those of one group: ${groupsOf(settings).join(', ')}`)
  serve.option('--config <file>', 'YAML file of settings; its keys are the flags in camelCase')
  for (const setting of settings) {
    const defaultNote = setting.defaultText === '' ? '' : `; default ${setting.defaultText}`
    const option = new Option(`${setting.flag} ${setting.argument}`, `${setting.help} [${setting.env}${defaultNote}]`)
    option.helpGroup(`${setting.heading} (${setting.group}):`)
    if (setting.repeatable) option.argParser((value: string, all: string[] | undefined) => [...(all ?? []), value])
    serve.addOption(option)
    for (const { flag } of setting.replaced) serve.addOption(new Option(`${flag} [value]`).hideHelp())
  }
  serve.action((flags) => done(run(flags)))
}

function addCompletion(program: Command, { out, done }: Context): void {
  program
    .command('completion')
    .description('print the completion script of a shell: source <(portcullis completion bash)')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh']))
    .action(async (shell) => done((await import('../../cli/completion.ts')).completionScript(shell, out)))
}

function addVersion(program: Command, { out, done }: Context): void {
  program
    .command('version')
    .description('print version, commit, build and the Node that runs it')
    .addOption(new Option('-o, --output <format>').choices(['text', 'json']).default('text'))
    .action(async ({ output }) => done((await import('../../cli/version.ts')).version({ output, out })))
}

function addProbe(program: Command, { out, err, now, done }: Context): void {
  program
    .command('probe')
    .description('check whether a gateway is ready: print the answer of its health endpoint, and exit with 0 or 1')
    .argument('[url]', 'health endpoint', 'http://127.0.0.1:9090/readyz')
    .option('--wait <duration>', 'retry until it is ready; default: try once')
    .option('--timeout <duration>', 'how long to wait for each answer', '5s')
    .option('--ca-file <file>', "CA of the endpoint's certificate, PEM")
    .option('--insecure-skip-tls-verify', 'accept any certificate', false)
    .action(async (url, options) =>
      done((await import('../../cli/probe.ts')).probe({ ...options, url, now, out, err })),
    )
}

function addInspection(program: Command, { input, out, err, now, done }: Context): void {
  program
    .command('check')
    .description('find every error in a directory of UpstreamCluster files')
    .argument('<dir>')
    .addOption(new Option('-o, --output <format>').choices(['text', 'json']).default('text'))
    .option('--no-secrets', 'do not resolve references to files and Secrets: for manifests whose keys are elsewhere')
    .action(async (dir, { output, secrets }) =>
      done((await import('../../cli/check.ts')).check({ dir, output, secrets, out })),
    )
  forControlPlane(program.command('explain'))
    .description('show what the gateway would do with a request, or with every line of an access log')
    .argument('[method]', 'HTTP method')
    .argument('[target]', 'request target, such as /api/v1/pods')
    .option('--config-dir <dir>', 'directory of UpstreamCluster files; default: the API server that holds them')
    .option('--host <host>', 'host name that the client requests')
    .option('--user <user>', 'user name')
    .option('--group <group>', 'group of the user; may be repeated', collect, [])
    .option('--user-agent <agent>', 'User-Agent of the client')
    .option('--address <ip>', 'address of the client')
    .option('--stdin', 'read requests from standard input: JSON lines in, JSON lines out', false)
    .addOption(new Option('-o, --output <format>').choices(['text', 'json']).default('text'))
    .action(async (method, target, options, command) => {
      if (!options.stdin && (method === undefined || target === undefined)) {
        command.error('error: give METHOD and TARGET, or --stdin', { exitCode: 1 })
      }
      const request = {
        method: method ?? '',
        target: target ?? '',
        ...(options.host === undefined ? {} : { host: options.host }),
        ...(options.user === undefined ? {} : { user: options.user }),
        ...(options.group.length === 0 ? {} : { groups: options.group }),
        ...(options.userAgent === undefined ? {} : { userAgent: options.userAgent }),
        ...(options.address === undefined ? {} : { remoteAddress: options.address }),
      }
      return done(
        (await import('../../cli/explain.ts')).explain({
          ...options,
          ...(options.stdin ? {} : { request }),
          input,
          out,
          err,
          now,
        }),
      )
    })
}

function addCredentials(program: Command, { out, err, now, done }: Context): void {
  forControlPlane(program.command('kubeconfig'))
    .description('print a kubeconfig that points at the gateway')
    .argument('[cluster]', 'metadata.name of the UpstreamCluster')
    .option('--all', 'a context for every cluster', false)
    .option('--config-dir <dir>', 'directory of UpstreamCluster files; default: the API server that holds them')
    .option('--server <url>', 'how clients reach the gateway; default: the host name of the cluster, port 8443')
    .option('--path', 'address the cluster by /clusters/NAME')
    .option('--user-cert <file>', 'client certificate, PEM')
    .option('--user-key <file>', 'its private key, PEM')
    .option('--token-file <file>', 'bearer token')
    .option('--login-issuer <url>', 'OpenID provider where users log in; the kubeconfig then contains no credential')
    .option('--login-client-id <id>', 'client ID at the provider')
    .option('--login-client-secret <secret>', 'secret of the client, if it has one')
    .option('--login-scope <scope>', 'as --scope of portcullis login; may be repeated', collect, [])
    .option('--login-auth-param <name=value>', 'as --auth-param of portcullis login; may be repeated', collect, [])
    .option('--login-redirect-url <url>', 'as --redirect-url of portcullis login', DEFAULT_REDIRECT)
    .option('--login-issuer-ca-file <file>', "CA of the provider's certificate, at its path on the users' machines")
    .option('--login-command <program>', 'what clients run to log in', 'portcullis')
    .option('--ca-file <file>', "CA of the gateway's serving certificate, PEM")
    .action(async (cluster, { all, userCert, userKey, loginIssuer, loginCommand, ...options }, command) => {
      if (all === (cluster !== undefined)) command.error('error: give CLUSTER, or --all', { exitCode: 1 })
      const flags = loginIssuer === undefined ? undefined : loginFlags(loginIssuer, options)
      const user = flags && {
        execUser: execUser(flags, loginCommand),
        ownToken: async () => (await import('../../login/cli/login.ts')).ownIdToken(flags, { err, now }),
      }
      return done(
        (await import('../../cli/kubeconfig.ts')).kubeconfig({
          ...options,
          ...user,
          ...(cluster === undefined ? {} : { cluster }),
          ...(userCert === undefined ? {} : { userCertFile: userCert }),
          ...(userKey === undefined ? {} : { userKeyFile: userKey }),
          out,
          err,
        }),
      )
    })
  const certs = program.command('certs').description('create certificates for a gateway and its clients')
  certs
    .command('init')
    .description('create a CA and the serving certificate of the gateway')
    .requiredOption('--dir <dir>', 'where the files go')
    .option('--host <host>', 'host name or address of the gateway; may be repeated', collect, [])
    .option('--force', 'overwrite existing files', false)
    .action(async ({ host: hosts, ...options }) =>
      done((await import('../../cli/certs.ts')).certsInit({ ...options, hosts, out, err })),
    )
  certs
    .command('client')
    .description('create a client certificate')
    .requiredOption('--dir <dir>', 'directory of the CA, as given to `certs init`')
    .requiredOption('--user <user>', 'user name')
    .option('--group <group>', 'group of the user; may be repeated', collect, [])
    .option('--uid <uid>', 'UID of the user')
    .option('--name <name>', 'name of the files; default: the user')
    .option('--days <days>', 'validity in days', Number)
    .option('--force', 'overwrite existing files', false)
    .action(async ({ group: groups, ...options }) =>
      done((await import('../../cli/certs.ts')).certsClient({ ...options, groups, out, err })),
    )
}

function loginFlags(
  issuer: string,
  options: {
    loginClientId?: string
    loginClientSecret?: string
    loginScope: string[]
    loginAuthParam: string[]
    loginRedirectUrl: string
    loginIssuerCaFile?: string
  },
): LoginFlags {
  const { loginClientId: clientId = '', loginClientSecret: clientSecret = '', loginScope: scope } = options
  return {
    issuer,
    clientId,
    clientSecret,
    scope,
    authParam: options.loginAuthParam,
    redirectUrl: options.loginRedirectUrl,
    issuerCaFile: options.loginIssuerCaFile ?? '',
  }
}

function addDemo(program: Command, demo: NonNullable<ProgramDeps['demo']>, { done }: Context): void {
  program
    .command('demo')
    .description('run a gateway in front of two small clusters in this process, with things to try')
    .option('--real', 'use real kube-apiservers (built on first use; needs Go)', false)
    .option('--listen <host:port>', 'address of the gateway', '127.0.0.1:8443')
    .option('--admin-listen <host:port>', 'address of its admin listener', '127.0.0.1:9090')
    .option('--control-listen <host:port>', 'address of its own API server', '127.0.0.1:9443')
    .option('--dir <dir>', 'directory for its files; deleted first', '.portcullis/demo')
    .action((options) => done(demo(options)))
}
