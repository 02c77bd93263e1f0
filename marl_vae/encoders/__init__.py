"""The encoders by name: each turns a masked sequence of any length into a few features, over real steps only."""

from marl_vae.encoders.attention import Attention
from marl_vae.encoders.convolution import DilatedConvolution
from marl_vae.encoders.recurrent import BiGRU, BiLSTM

ENCODERS = {"lstm": BiLSTM, "gru": BiGRU, "conv": DilatedConvolution, "attention": Attention}
