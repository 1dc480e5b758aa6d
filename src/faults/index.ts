/** Faults on purpose, for tests of what is built on a store: `holdfast/faults`. */
export {
  breakOff,
  delayReply,
  delayRequest,
  duplicate,
  type Fault,
  hang,
  loseReply,
  loseRequest,
  pass,
  refuse,
} from './fault.js'
export { type FaultOptions, type FaultPlan, type FaultyStore, faultyStore, type Operation } from './faulty-store.js'
export { type TcpProxy, type TcpProxyCounts, type TcpProxyOptions, tcpProxy } from './tcp-proxy.js'
