"""Key shapes of model providers and of the services around them."""

from itertools import chain

from ricordo.guard.rule import KeyRule, key_rules

__all__ = ["MODEL_RULES"]

MODEL_RULES: tuple[KeyRule, ...] = tuple(
    chain(
        key_rules("anthropic-key", "sk-ant-", r"[A-Za-z0-9_-]{20,}"),
        key_rules("openrouter-key", "sk-or-", r"[A-Za-z0-9_-]{32,}", bounded=True),
        key_rules("langfuse-key", "sk-lf-", r"[A-Za-z0-9-]{30,}", bounded=True),
        key_rules("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-None-", r"[A-Za-z0-9_-]{20,}"),
        key_rules("openai-key", "sk-", r"[A-Za-z0-9]{20,}", bounded=True),
        key_rules("elevenlabs-key", "sk_", r"[0-9a-f]{48}(?![A-Za-z0-9])", bounded=True),
        key_rules("google-key", "AIza", r"[A-Za-z0-9_-]{35,}", bounded=True),
        key_rules("google-key", "AQ.Ab", r"[A-Za-z0-9_-]{40,}", bounded=True),
        key_rules("huggingface-token", "hf_ api_org_", r"[A-Za-z0-9]{30,}", bounded=True),
        key_rules("groq-key", "gsk_", r"[A-Za-z0-9]{40,}", bounded=True),
        key_rules("xai-key", "xai-", r"[A-Za-z0-9]{60,}", bounded=True),
        key_rules("replicate-token", "r8_", r"[A-Za-z0-9]{35,}", bounded=True),
        key_rules("perplexity-key", "pplx-", r"[A-Za-z0-9]{40,}", bounded=True),
        key_rules("together-key", "tgp_v1_", r"[A-Za-z0-9_-]{40,}"),
        key_rules("fireworks-key", "fw_", r"[A-Za-z0-9]{22,24}(?![A-Za-z0-9_])", bounded=True),
        key_rules("cerebras-key", "csk-", r"[a-z0-9]{40,}", bounded=True),
        key_rules("nvidia-key", "nvapi-", r"[A-Za-z0-9_-]{50,}"),
        key_rules("voyage-key", "pa-", r"[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])", bounded=True),
        key_rules("jina-key", "jina_", r"[A-Za-z0-9_-]{50,}", bounded=True),
        key_rules("tavily-key", "tvly-", r"[A-Za-z0-9-]{28,}", bounded=True),
        key_rules("firecrawl-key", "fc-", r"[0-9a-f]{32}(?![A-Za-z0-9])", bounded=True),
        key_rules("pinecone-key", "pcsk_", r"[A-Za-z0-9]{5,8}_[A-Za-z0-9]{50,}"),
        key_rules("langsmith-key", "lsv2_pt_ lsv2_sk_", r"[0-9a-f]{32}_[0-9a-f]{10}"),
        key_rules("e2b-key", "e2b_", r"[0-9a-f]{40}(?![A-Za-z0-9])", bounded=True),
    )
)
