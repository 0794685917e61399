// The command line: names, flags and help of every command. What serve and demo do comes from above (src/main.ts). Modules of a
// command are loaded when it runs: most of what a gateway needs would otherwise be read for `--version`.

import { Command, type CommandUnknownOpts, Option } from 'commander'
import { DEGRADE_MODES } from '../api/upstream-cluster/degrade-modes.ts'
import { addControl } from './control/program.ts'
import { addProtect, type ControlPlaneCommand } from './protect/program.ts'

/** A setting of the gateway as a flag. */
export interface FlagSetting {
  readonly flag: string
  readonly argument: string
  readonly env: string
  readonly repeatable: boolean
  readonly defaultText: string
  readonly help: string
}

export interface ProgramParts {
  readonly version: string
  /** Flags of `serve`. */
  settings(): Promise<readonly FlagSetting[]>
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  readonly input: AsyncIterable<string>
  readonly env: Readonly<Record<string, string | undefined>>
  readonly now: () => number
  /** Each resolves with the exit code. */
  serve(flags: Record<string, unknown>): Promise<number>
  demo(options: {
    real: boolean
    listen: string
    adminListen: string
    controlListen: string
    dir: string
  }): Promise<number>
}

/** Runs one command line; resolves with the exit code. */
export async function runProgram(argv: readonly string[], parts: ProgramParts): Promise<number> {
  let code = 0
  const done = async (result: Promise<number> | number): Promise<void> => {
    code = await result
  }
  const program = new Command('portcullis')
    .description('Kubernetes-aware layer-7 API gateway in front of kube-apiservers')
    .version(parts.version)
    .showHelpAfterError('(portcullis help COMMAND shows what it takes)')
    .exitOverride()
    .configureOutput({ writeOut: parts.out, writeErr: parts.err })
  // Only `serve` has them, and they come with all that reads settings.
  const settings = argv.includes('serve') ? await parts.settings() : []
  addServe(program, settings, parts, done)
  addInspection(program, parts, done)
  addCredentials(program, parts, done)
  addSwitches(program, parts, done)
  addProtect(program, { ...parts, done, forControlPlane })
  addImport(program, parts, done)
  addControl(program, { ...parts, done })
  program
    .command('demo')
    .description('a gateway in front of two small clusters in this process, with things to try')
    .option('--real', 'in front of real kube-apiservers (built on first use; needs Go)', false)
    .option('--listen <host:port>', 'address of the gateway', '127.0.0.1:8443')
    .option('--admin-listen <host:port>', 'address of its admin listener', '127.0.0.1:9090')
    .option('--control-listen <host:port>', 'address of its own API server', '127.0.0.1:9443')
    .option('--dir <dir>', 'where its files go, created again', '.portcullis/demo')
    .action((options) => done(parts.demo(options)))
  const [first, ...path] = argv
  if (first === 'help' && path.length > 0) return helpOf(program, path, parts)
  try {
    await program.parseAsync(argv, { from: 'user' })
  } catch (error) {
    const exit = error instanceof Error ? Reflect.get(error, 'exitCode') : undefined
    if (typeof exit !== 'number') throw error
    return exit
  }
  return code
}

/** `help protect install`: commander's own help follows one step only. The exit code. */
function helpOf(program: CommandUnknownOpts, path: readonly string[], { err }: ProgramParts): number {
  let command: CommandUnknownOpts | undefined = program
  for (const name of path) command = command?.commands.find((one) => one.name() === name)
  if (command === undefined) {
    err(`error: unknown command '${path.join(' ')}'\n(portcullis help shows them all)\n`)
    return 1
  }
  command.outputHelp()
  return 0
}

/** Options of every command that speaks to the API server of the objects. */
function forControlPlane(command: Command): ControlPlaneCommand {
  return command
    .option('--kubeconfig <file>', 'of the API server that holds the objects; default: as kubectl')
    .option('--context <name>', "context in it; default: the kubeconfig's own")
}

function addSwitches(program: Command, { out, err, now }: ProgramParts, done: Done): void {
  forControlPlane(program.command('degrade'))
    .description('the degrade switch of a cluster: throw it, or see where it is in force')
    .argument('<cluster>', 'metadata.name of the UpstreamCluster')
    .option('--mode <mode>', DEGRADE_MODES.join(', '))
    .option('--reason <text>', 'shown in every refusal; needed with every mode but Off')
    .option('--ttl <duration>', 'the mode ends by itself after this time')
    .option('--shadow', 'refuse nothing, only count and warn; without it a shadow that is set is ended', false)
    .option('--status', 'wait until every replica and thread has it in force, and list them', false)
    .option('--timeout <duration>', 'how long to wait', '30s')
    .action((cluster, options) =>
      done(import('./degrade.ts').then(({ degrade }) => degrade({ ...options, cluster, now, out, err }))),
    )
  forControlPlane(program.command('revoke'))
    .description('refuse a certificate, a token or a user from now on, and abort its running requests')
    .argument('[cluster]', 'metadata.name of the UpstreamCluster')
    .option('--all', 'in every cluster', false)
    .option('--user <user>', 'user name')
    .option('--certificate <file>', 'client certificate (PEM), or a kubeconfig: its current user')
    .option('--token-file <file>', 'bearer token, or a kubeconfig: its current user')
    .option('--reason <text>', 'kept with the revocation')
    .option('--timeout <duration>', 'how long to wait until it is in force everywhere', '30s')
    .action((cluster, { certificate, ...options }) => {
      const optional = {
        ...(cluster === undefined ? {} : { cluster }),
        ...(certificate && { certificateFile: certificate }),
      }
      return done(import('./revoke.ts').then(({ revoke }) => revoke({ ...options, ...optional, now, out, err })))
    })
}

function addImport(program: Command, { out, err }: ProgramParts, done: Done): void {
  const command = program.command('import').description('make UpstreamClusters of what there is')
  forControlPlane(command.command('kubegateway'))
    .description('the UpstreamClusters of a KubeGateway control plane, with a remark on everything that differs')
    .option('--dir <dir>', 'write a file for each there; default: to standard output')
    .option('--force', 'overwrite files that are there', false)
    .action((options) =>
      done(
        import('./import/kubegateway.ts').then(({ importKubeGateway }) => importKubeGateway({ ...options, out, err })),
      ),
    )
  command
    .command('kubeconfig')
    .description('an UpstreamCluster and a Secret for each context')
    .argument('<file>', 'kubeconfig')
    .option('--namespace <namespace>', 'of the Secrets', 'portcullis-system')
    .option('--offline', 'ask no cluster for the CA of its client certificates', false)
    .option('--dir <dir>', 'write a file for each there; default: to standard output')
    .option('--force', 'overwrite files that are there', false)
    .action((file, options) =>
      done(
        import('./import/kubeconfig.ts').then(({ importKubeconfig }) =>
          importKubeconfig({ ...options, file, out, err }),
        ),
      ),
    )
}

type Done = (result: Promise<number> | number) => Promise<void>

function addServe(program: Command, settings: readonly FlagSetting[], parts: ProgramParts, done: Done): void {
  const serve = program.command('serve').description('run the gateway')
  serve.option('--config <file>', 'YAML file of settings, keys as the flags in camelCase')
  for (const setting of settings) {
    const defaultNote = setting.defaultText === '' ? '' : `; default ${setting.defaultText}`
    const option = new Option(`${setting.flag} ${setting.argument}`, `${setting.help} [${setting.env}${defaultNote}]`)
    if (setting.repeatable) option.argParser((value: string, all: string[] | undefined) => [...(all ?? []), value])
    serve.addOption(option)
  }
  serve.action((flags) => done(parts.serve(flags)))
}

function addInspection(program: Command, parts: ProgramParts, done: Done): void {
  program
    .command('check')
    .description('find every error in a directory of UpstreamCluster files')
    .argument('<dir>')
    .addOption(new Option('-o, --output <format>').choices(['text', 'json']).default('text'))
    .option('--no-secrets', 'follow no reference to a file or a Secret: for manifests whose keys are elsewhere')
    .action((dir, { output, secrets }) =>
      done(import('./check.ts').then(({ check }) => check({ dir, output, secrets, out: parts.out }))),
    )
  forControlPlane(program.command('explain'))
    .description('what the gateway would do with a request, or with every line of an access log')
    .argument('[method]', 'HTTP method')
    .argument('[target]', 'request target, such as /api/v1/pods')
    .option('--config-dir <dir>', 'directory of UpstreamCluster files; default: the API server that holds them')
    .option('--host <host>', 'host name that the client asks for')
    .option('--user <user>', 'user name')
    .option(
      '--group <group>',
      'group of the user; may be repeated',
      (value: string, all: string[]) => [...all, value],
      [],
    )
    .option('--user-agent <agent>', 'User-Agent of the client')
    .option('--address <ip>', 'address of the client')
    .option('--stdin', 'read requests from standard input: JSON lines in, JSON lines out', false)
    .addOption(new Option('-o, --output <format>').choices(['text', 'json']).default('text'))
    .action((method, target, options, command) => {
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
        import('./explain.ts').then(({ explain }) =>
          explain({
            ...options,
            ...(options.stdin ? {} : { request }),
            input: parts.input,
            out: parts.out,
            err: parts.err,
            now: parts.now,
          }),
        ),
      )
    })
}

function collect(value: string, all: string[]): string[] {
  return [...all, value]
}

function addCredentials(program: Command, parts: ProgramParts, done: Done): void {
  const { out, err } = parts
  forControlPlane(program.command('kubeconfig'))
    .description('print a kubeconfig that points at the gateway')
    .argument('<cluster>', 'metadata.name of the UpstreamCluster')
    .option('--config-dir <dir>', 'directory of UpstreamCluster files; default: the API server that holds them')
    .option('--server <url>', 'how clients reach the gateway; default: the host name of the cluster, port 8443')
    .option('--path', 'address the cluster by /clusters/NAME')
    .option('--user-cert <file>', 'client certificate, PEM')
    .option('--user-key <file>', 'its private key, PEM')
    .option('--token-file <file>', 'bearer token')
    .option('--ca-file <file>', "CA of the gateway's serving certificate, PEM")
    .action((cluster, { userCert, userKey, ...options }) =>
      done(
        import('./kubeconfig.ts').then(({ kubeconfig }) =>
          kubeconfig({
            ...options,
            cluster,
            ...(userCert === undefined ? {} : { userCertFile: userCert }),
            ...(userKey === undefined ? {} : { userKeyFile: userKey }),
            out,
            err,
          }),
        ),
      ),
    )
  const certs = program.command('certs').description('make the certificates of a gateway and its clients')
  certs
    .command('init')
    .description('a CA and the serving certificate of the gateway')
    .requiredOption('--dir <dir>', 'where the files go')
    .option('--host <host>', 'host name or address of the gateway; may be repeated', collect, [])
    .option('--force', 'overwrite what is there', false)
    .action(({ host: hosts, ...options }) =>
      done(import('./certs.ts').then(({ certsInit }) => certsInit({ ...options, hosts, out, err }))),
    )
  certs
    .command('client')
    .description('a client certificate')
    .requiredOption('--dir <dir>', 'where `certs init` put the CA')
    .requiredOption('--user <user>', 'user name')
    .option('--group <group>', 'group of the user; may be repeated', collect, [])
    .option('--uid <uid>', 'UID of the user')
    .option('--name <name>', 'name of the files; default: the user')
    .option('--days <days>', 'validity', Number)
    .option('--force', 'overwrite what is there', false)
    .action(({ group: groups, ...options }) =>
      done(import('./certs.ts').then(({ certsClient }) => certsClient({ ...options, groups, out, err }))),
    )
}
