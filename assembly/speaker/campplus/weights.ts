/** The network's weights: `createWeights` walks the layers in the order of the model file and gives each tensor a place. */
import { create, reserve } from "../../memory";
import { ACTIVATION_HIGH, Norm } from "../../nn/activation";
import { Convolution } from "../../nn/convolution";
import { Dense } from "../../nn/dense";
import { Loading, createConvolution, createDense, createQuadConvolution, expectCopy, expectResidual } from "../../nn/loading";
import { CONCATENATION_HIGH, DIMENSIONS } from "../config";
import {
  BLOCKS,
  BOTTLENECK,
  CONTEXT,
  FRONT_CHANNELS,
  GROWTH,
  SPEAKER_CHANNELS,
  TDNN_CHANNELS,
  TDNN_TAPS,
  blockDilation,
  blockLayers,
} from "./config";

/** relu(conv2(relu(conv1(x))) + shortcut(x)); without a shortcut convolution the input itself is added. */
@unmanaged
export class ResidualBlock {
  conv1: Convolution;
  conv2: Convolution;
  shortcut: Convolution | null;
}

/** A pre-activation over concatenated channels, and a convolution of one tap. */
@unmanaged
export class Normed {
  norm: Norm;
  pointwise: Convolution;
}

/** One layer of a dense block, which begins with its bottleneck. */
@unmanaged
export class DenseLayer extends Normed {
  local: Convolution;
  squeeze: Dense;
  excite: Dense;
}

@unmanaged
export class Weights {
  frontConv1: Convolution;
  stage1a: ResidualBlock;
  stage1b: ResidualBlock;
  stage2a: ResidualBlock;
  stage2b: ResidualBlock;
  frontConv2: Convolution;
  tdnn: Convolution;
  /** Pointers of all dense layers, block after block. */
  layers: usize;
  /** Pointers of the three transits. */
  transits: usize;
  outNorm: Norm;
  dense: Dense;
  map: Dense;
}

/** 3 × 3, rectified. */
function createPlane(loading: Loading): Convolution {
  return createQuadConvolution(loading, FRONT_CHANNELS, 3 * FRONT_CHANNELS, true, 0, ACTIVATION_HIGH);
}

/** The first block of a stage halves the bins. */
function createResidualBlock(loading: Loading, halves: bool): ResidualBlock {
  const b = create<ResidualBlock>();
  b.conv1 = createPlane(loading);
  if (halves) {
    const shortcut = createConvolution(loading, FRONT_CHANNELS, 1, FRONT_CHANNELS, true, -CONCATENATION_HIGH, CONCATENATION_HIGH);
    b.conv1.binStride = 2;
    shortcut.binStride = 2;
    b.shortcut = shortcut;
  }
  b.conv2 = createPlane(loading);
  expectResidual(loading, b.conv2);
  return b;
}

/** gain i16[channels] (Q15), bias i16[channels]. */
function createNorm(loading: Loading, channels: i32): Norm {
  const n = create<Norm>();
  n.channels = channels;
  n.gain = reserve(<usize>channels << 1);
  n.bias = reserve(<usize>channels << 1);
  expectCopy(loading, n.gain, channels << 1);
  expectCopy(loading, n.bias, channels << 1);
  return n;
}

function createDenseLayer(loading: Loading, channels: i32, dilation: i32): DenseLayer {
  const l = create<DenseLayer>();
  l.norm = createNorm(loading, channels);
  l.pointwise = createConvolution(loading, BOTTLENECK, 1, channels, false, 0, ACTIVATION_HIGH);
  l.local = createConvolution(loading, GROWTH, 3, BOTTLENECK, false, -CONCATENATION_HIGH, CONCATENATION_HIGH);
  l.local.dilation = dilation;
  l.squeeze = createDense(loading, CONTEXT, BOTTLENECK, false);
  l.excite = createDense(loading, GROWTH, CONTEXT, false);
  return l;
}

/** Halves the channels. */
function createTransit(loading: Loading, channels: i32): Normed {
  const t = create<Normed>();
  t.norm = createNorm(loading, channels);
  t.pointwise = createConvolution(loading, channels >> 1, 1, channels, false, -CONCATENATION_HIGH, CONCATENATION_HIGH);
  return t;
}

/** Reserves every weight. The order of calls is the order of tensors in the model file. */
export function createWeights(loading: Loading): Weights {
  const w = create<Weights>();
  w.frontConv1 = createConvolution(loading, FRONT_CHANNELS, 3, 4, true, 0, ACTIVATION_HIGH);
  w.stage1a = createResidualBlock(loading, true);
  w.stage1b = createResidualBlock(loading, false);
  w.stage2a = createResidualBlock(loading, true);
  w.stage2b = createResidualBlock(loading, false);
  w.frontConv2 = createPlane(loading);
  w.frontConv2.binStride = 2;
  w.tdnn = createConvolution(loading, TDNN_CHANNELS, TDNN_TAPS, 10 * FRONT_CHANNELS, false, 0, CONCATENATION_HIGH);
  w.tdnn.stride = 2;
  w.layers = reserve(64 * sizeof<usize>());
  w.transits = reserve(BLOCKS * sizeof<usize>());
  let channels = TDNN_CHANNELS;
  let at = w.layers;
  for (let block = 0; block < BLOCKS; block++) {
    for (let i = 0; i < blockLayers(block); i++, at += sizeof<usize>(), channels += GROWTH) {
      store<usize>(at, changetype<usize>(createDenseLayer(loading, channels, blockDilation(block))));
    }
    store<usize>(w.transits + <usize>block * sizeof<usize>(), changetype<usize>(createTransit(loading, channels)));
    channels >>= 1;
  }
  w.outNorm = createNorm(loading, channels);
  w.dense = createDense(loading, SPEAKER_CHANNELS, 2 * channels, false);
  w.map = createDense(loading, DIMENSIONS, SPEAKER_CHANNELS, true);
  return w;
}
