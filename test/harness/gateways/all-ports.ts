/** Flags of an embedded gateway with each of its ports open, wherever the system has one free. */
export function allPorts(dataDir: string): Readonly<Record<string, string | boolean | string[]>> {
  return {
    source: 'embedded',
    dataDir,
    listen: ['127.0.0.1:0'],
    adminListen: '127.0.0.1:0',
    controlListen: '127.0.0.1:0',
    protectionListen: '127.0.0.1:0',
    accessLog: false,
  }
}
