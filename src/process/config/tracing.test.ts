import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigError, loadConfig } from './config.ts'

function problemsOf(flags: Record<string, unknown>): string[] {
  try {
    loadConfig({ flags, env: {}, readFile: () => '' })
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return error.problems.map(({ where, message }) => `${where}: ${message}`)
  }
  return []
}

test('a collector is an HTTP URL; credentials in it are refused and not repeated', () => {
  const tracingOtlpEndpoint = 'http://127.0.0.1:4318'
  assert.deepEqual(problemsOf({ tracingOtlpEndpoint }), [])
  assert.deepEqual(problemsOf({ tracingOtlpEndpoint: 'https://otel.example.com/base/', tracingOtlpCaFile: 'ca' }), [])
  for (const url of ['127.0.0.1:4318', 'grpc://x:4317', 'http://user:secret@x', 'http://x?token=secret']) {
    const [problem, ...others] = problemsOf({ tracingOtlpEndpoint: url })
    assert.match(problem ?? '', /^--tracing-otlp-endpoint: is not an HTTP URL/)
    assert.doesNotMatch(problem ?? '', /secret/)
    assert.deepEqual(others, [])
  }
})

test('what has no meaning without a collector, or without TLS, is said', () => {
  assert.deepEqual(problemsOf({ tracingSamplingRatePerMillion: '1000' }), [
    '--tracing-sampling-rate-per-million: is given without --tracing-otlp-endpoint',
  ])
  assert.deepEqual(problemsOf({ tracingOtlpHeadersFile: 'h' }), [
    '--tracing-otlp-headers-file: is given without --tracing-otlp-endpoint',
  ])
  assert.deepEqual(problemsOf({ tracingOtlpEndpoint: 'http://x:4318', tracingOtlpCaFile: 'ca' }), [
    '--tracing-otlp-ca-file: has no meaning, because --tracing-otlp-endpoint is not TLS',
  ])
})
